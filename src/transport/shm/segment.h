#pragma once
#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>

#include "transport/futex_event.h"
#include "transport/shared_sum.h"

namespace trireme {

// A message on its way from one rank to another. The sender fills it and sets kPosted; from then on
// the receiver reads. Bytes that lie in the segment are copied from where they are, others flow
// through `staging`.
struct ShmSlot {
  enum State : uint32_t {
    kFree,
    kPosted,
    kTaken,   // read in place; the sender frees it
    kRefused  // `wanted` bytes were expected; the sender's ticket fails, too
  };
  static constexpr size_t kStaging = 64 << 10;
  static constexpr uint64_t kStaged = ~uint64_t(0);

  std::atomic<uint32_t> state;
  int32_t tag;
  uint64_t number;  // of this sender, receiver and tag: keeps the order
  uint64_t length, wanted;
  uint64_t place;                    // in the segment, or kStaged
  std::atomic<uint64_t> head, tail;  // staged bytes written and read so far
};

// The memory that the ranks of one machine share: mapped before they are forked, gone with the last
// of them, also after kill -9. No name, no file.
class ShmSegment {
 public:
  static constexpr int kSlots = 64;  // from one rank to another

  // `bytes`: what each rank may allocate for itself.
  ShmSegment(int ranks, size_t bytes);
  ~ShmSegment();
  ShmSegment(const ShmSegment&) = delete;
  ShmSegment& operator=(const ShmSegment&) = delete;

  int ranks() const { return ranks_; }
  std::byte* base() const { return base_; }
  size_t size() const { return size_; }
  bool Holds(const void* data, size_t bytes) const;

  FutexEvent& event(int rank) const;
  ShmSlot& slot(int from, int to, int index) const;
  std::byte* staging(int from, int to, int index) const;
  SumPlace& meeting() const;
  std::byte* arena(int rank) const;
  size_t arena_size() const { return arena_size_; }

  // The first call wins; wakes every rank.
  void Abort(int rank, std::string_view reason) noexcept;
  bool aborted() const;
  int lost_rank() const;
  std::string reason() const;

 private:
  struct Header {
    std::atomic<int> claimed;   // somebody writes the reason
    std::atomic<int> finished;  // it is there
    int lost_rank;
    char reason[2000];
  };
  Header& header() const { return *reinterpret_cast<Header*>(base_); }

  const int ranks_;
  size_t events_ = 0, slots_ = 0, staging_ = 0, meeting_ = 0, arenas_ = 0;  // offsets
  size_t arena_size_ = 0, size_ = 0;
  std::byte* base_ = nullptr;
};

}  // namespace trireme
