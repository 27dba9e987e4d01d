#include "transport/all_reduce.h"

#include <algorithm>
#include <vector>

#include "base/assert.h"

namespace trireme {
namespace {

// Stretch c of N of a list: the lengths differ by one at most.
template <class T>
std::span<T> Stretch(std::span<T> values, int c, int n) {
  const size_t begin = values.size() * size_t(c) / size_t(n);
  const size_t end = values.size() * size_t(c + 1) / size_t(n);
  return values.subspan(begin, end - begin);
}

template <class T>
std::span<T> Piece(std::span<T> values, size_t k, size_t piece) {
  const size_t begin = std::min(values.size(), k * piece);
  return values.subspan(begin, std::min(piece, values.size() - begin));
}

size_t Pieces(size_t length, size_t piece) { return (length + piece - 1) / piece; }

// One step of the ring: `out` goes to the next rank while `in` comes from the one before, in
// pieces, so that a piece is added while it is still in the cache.
template <class T>
class RingStep {
 public:
  RingStep(Group& group, Tag tag, size_t piece)
      : group_(group),
        tag_(tag),
        piece_(piece),
        next_((group.rank() + 1) % group.size()),
        before_((group.rank() + group.size() - 1) % group.size()) {}

  // in += what arrives, by way of the two halves of `scratch`.
  void Add(std::span<T> out, std::span<T> in, std::span<T> scratch) {
    Ticket arriving[2], leaving;
    const auto half = [&](size_t k) {
      return scratch.subspan(k % 2 * piece_, Piece(in, k, piece_).size());
    };
    const size_t arrivals = Pieces(in.size(), piece_), departures = Pieces(out.size(), piece_);
    if (arrivals > 0) arriving[0] = Receive(half(0));
    for (size_t k = 0; k < std::max(arrivals, departures); ++k) {
      if (k + 1 < arrivals) arriving[(k + 1) % 2] = Receive(half(k + 1));
      if (k < departures) leaving = Send(Piece(out, k, piece_));
      if (k < arrivals) {
        arriving[k % 2].Wait();
        const std::span<T> to = Piece(in, k, piece_), from = half(k);
        for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
      }
      leaving.Wait();
    }
  }

  void Replace(std::span<T> out, std::span<T> in) {
    Ticket arriving = Receive(in), leaving = Send(out);
    arriving.Wait();
    leaving.Wait();
  }

 private:
  Ticket Send(std::span<const T> values) { return group_.Send(next_, tag_, std::as_bytes(values)); }
  Ticket Receive(std::span<T> values) {
    return group_.Receive(before_, tag_, std::as_writable_bytes(values));
  }

  Group& group_;
  const Tag tag_;
  const size_t piece_;
  const int next_, before_;
};

template <class T>
void RingSum(Group& group, Tag tag, std::span<T> values, std::span<T> scratch) {
  const int n = group.size(), rank = group.rank();
  if (n == 1) return;
  const auto stretch = [&](int c) { return Stretch(values, ((c % n) + n) % n, n); };
  RingStep<T> step(group, tag, scratch.size() / 2);
  // Each stretch travels once around the ring and is complete at the rank before its first ...
  for (int s = 0; s < n - 1; ++s) step.Add(stretch(rank - s), stretch(rank - s - 1), scratch);
  // ... from where it travels around once more.
  for (int s = 0; s < n - 1; ++s) step.Replace(stretch(rank + 1 - s), stretch(rank - s));
}

}  // namespace

void AllReduceSum(Group& group, Tag tag, std::span<float> values, std::span<float> scratch) {
  TRIREME_ASSERT(scratch.size() >= kRingScratch);
  RingSum<float>(group, tag, values, scratch.first(kRingScratch));
}

void AllReduceSum(Group& group, Tag tag, std::span<double> values) {
  std::vector<double> scratch(2 * (values.size() / size_t(group.size()) + 1));
  RingSum<double>(group, tag, values, scratch);
}

}  // namespace trireme
