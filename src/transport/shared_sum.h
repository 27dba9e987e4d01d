#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

#include "transport/futex_event.h"
#include "transport/group.h"
#include "transport/shared_memory.h"

namespace trireme {

// Where the members of a SharedMemory meet: lies in memory that all of them address, zeroed at
// first.
class SumPlace {
 public:
  static size_t Bytes(int ranks);  // of a place, 64-byte aligned

  struct alignas(64) Seat {
    std::atomic<uint32_t> arrived, done;  // the newest meeting to which, with which
    uint32_t parts;
    bool finite;  // the member's stretch of the sum; of meeting `done`
    uint64_t length;
    uint64_t into;  // places are offsets: the memory may lie elsewhere in another process
    uint64_t at[SharedMemory::kMostParts];
  };
  FutexEvent& event() { return event_; }
  Seat& seat(int rank) { return reinterpret_cast<Seat*>(this + 1)[rank]; }

 private:
  alignas(64) FutexEvent event_;
};

// One member's view of a meeting place.
class SharedSum {
 public:
  struct Member {
    int rank = 0, size = 1;
    std::byte* base = nullptr;  // of the memory that all address
    size_t bytes = 0;           // 0: everything is shared (threads)
    double timeout_s = 60;
    // Throws PeerLost if the group is finished; told a rank, that one has been silent for too long.
    std::function<void(int silent)> check;
  };
  static constexpr int kNobody = -1;

  SharedSum(SumPlace& place, Member member);
  bool SumInOrder(std::span<const std::span<float>> parts, std::span<float> into);
  void Await(int whom, FunctionRef<bool()> done) const;  // see SharedMemory
  Volume volume() const { return volume_; }              // read and written in others' memory

 private:
  void Announce(std::span<const std::span<float>> parts, std::span<float> into);
  void AwaitAll(std::atomic<uint32_t> SumPlace::Seat::*what);
  float* At(const SumPlace::Seat& seat, uint64_t place) const;
  bool SumStretch();  // is it finite?

  SumPlace& place_;
  const Member member_;
  const int spins_;
  uint32_t round_ = 0;
  Volume volume_;
};

}  // namespace trireme
