#pragma once
#include <algorithm>
#include <cstdint>

#include "transport/collective/element.h"
#include "transport/group.h"

// What the collectives are made of: values that go from rank to rank in pieces, so that a piece is
// added while it is still in the cache and while the next one is on its way.
namespace trireme {

// `count` stretches from the c-th of n of a list: the lengths of stretches differ by one at most.
template <class T>
std::span<T> Stretch(std::span<T> values, int c, int n, int count = 1) {
  const size_t begin = values.size() * size_t(c) / size_t(n);
  const size_t end = values.size() * size_t(c + count) / size_t(n);
  return values.subspan(begin, end - begin);
}

template <class T>
std::span<T> Piece(std::span<T> values, size_t k, size_t piece) {
  const size_t begin = std::min(values.size(), k * piece);
  return values.subspan(begin, std::min(piece, values.size() - begin));
}

inline size_t Pieces(size_t length, size_t piece) { return length / piece + (length % piece != 0); }

// Where a collective works: a group, a tag of its own, scratch memory of W::kStages pieces. All
// members have pieces of the same length.
template <class W>
struct Lane {
  Group& group;
  const Tag tag;
  typename W::Element* const stages;
  const size_t piece;  // values

  int rank() const { return group.rank(); }
  int size() const { return group.size(); }
  std::span<typename W::Element> Stage(size_t i, size_t length) const {
    return {stages + i * piece, length};
  }
};

template <class W>
Lane<W> LaneOf(Group& group, Tag tag, std::span<typename W::Value> scratch) {
  return {group, tag, reinterpret_cast<typename W::Element*>(scratch.data()),
          scratch.size_bytes() / (W::kStages * sizeof(typename W::Element))};
}

// Pieces that leave for one rank: two at a time, from `stage` and the one after it if they are
// changed on their way.
template <class W>
class Leaving {
 public:
  Leaving(const Lane<W>& lane, int to, size_t stage) : lane_(lane), to_(to), stage_(stage) {}

  // The values stay untouched until the next call but one, or Drain.
  void Send(std::span<const typename W::Value> values) {
    const size_t slot = count_++ % 2;
    tickets_[slot].Wait();
    if constexpr (W::kStaged) {
      const auto packed = lane_.Stage(stage_ + slot, values.size());
      W::Pack(values.data(), packed.data(), values.size());
      tickets_[slot] = lane_.group.Send(to_, lane_.tag, std::as_bytes(packed));
    } else {
      tickets_[slot] = lane_.group.Send(to_, lane_.tag, std::as_bytes(values));
    }
  }
  void Drain() {
    for (Ticket& ticket : tickets_) ticket.Wait();
  }

 private:
  const Lane<W>& lane_;
  const int to_;
  const size_t stage_;
  size_t count_ = 0;
  Ticket tickets_[2];
};

enum class Then { kAdd, kReplace };  // what a value that arrives does to the one that is there

// Pieces that arrive from one rank: two may be expected at a time.
template <class W, Then then>
class Arriving {
 public:
  // Values need no scratch memory where they may go straight to their place.
  static constexpr bool kStraight = then == Then::kReplace && !W::kStaged;

  Arriving(const Lane<W>& lane, int from, size_t stage) : lane_(lane), from_(from), stage_(stage) {}

  void Expect(std::span<typename W::Value> values) {
    const size_t slot = expected_++ % 2;
    values_[slot] = values;
    if constexpr (kStraight) {
      tickets_[slot] = lane_.group.Receive(from_, lane_.tag, std::as_writable_bytes(values));
    } else {
      const auto staged = lane_.Stage(stage_ + slot, values.size());
      tickets_[slot] = lane_.group.Receive(from_, lane_.tag, std::as_writable_bytes(staged));
    }
  }
  void Take() {  // the one that was expected first
    const size_t slot = taken_++ % 2;
    tickets_[slot].Wait();
    const std::span<typename W::Value> values = values_[slot];
    if constexpr (then == Then::kAdd) {
      W::Add(lane_.Stage(stage_ + slot, values.size()).data(), values.data(), values.size());
    } else if constexpr (W::kStaged) {
      W::Unpack(lane_.Stage(stage_ + slot, values.size()).data(), values.data(), values.size());
    }
  }

 private:
  const Lane<W>& lane_;
  const int from_;
  const size_t stage_;
  size_t expected_ = 0, taken_ = 0;
  std::span<typename W::Value> values_[2];
  Ticket tickets_[2];
};

// `out` goes to rank `to` while `in` arrives from rank `from`; either may be empty, and then no
// message is sent that way.
template <class W, Then then>
void Exchange(const Lane<W>& lane, int to, std::span<const typename W::Value> out, int from,
              std::span<typename W::Value> in) {
  // What needs no work on arrival needs no pieces.
  const size_t piece = Arriving<W, then>::kStraight ? SIZE_MAX : lane.piece;
  const size_t arrivals = Pieces(in.size(), piece), departures = Pieces(out.size(), piece);
  Arriving<W, then> arriving(lane, from, 0);
  Leaving<W> leaving(lane, to, 2);
  if (arrivals > 0) arriving.Expect(Piece(in, 0, piece));
  for (size_t k = 0; k < std::max(arrivals, departures); ++k) {
    if (k + 1 < arrivals) arriving.Expect(Piece(in, k + 1, piece));
    if (k < departures) leaving.Send(Piece(out, k, piece));
    if (k < arrivals) arriving.Take();
  }
  leaving.Drain();
}

}  // namespace trireme
