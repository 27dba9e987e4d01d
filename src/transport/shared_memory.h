#pragma once
#include <cstddef>
#include <span>

#include "base/function_ref.h"
#include "transport/group.h"

namespace trireme {

// Memory that all members of a group address, and what they do there together: each byte is read
// where it lies and written where it is wanted, nothing travels. Belongs to the group that has it.
//
// One thread of each rank at a time.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;

  // Of this rank, visible to all at the same address, zeroed, 64-byte aligned; stays until the job
  // ends.
  virtual std::span<float> Allocate(size_t floats) = 0;

  // Every member calls it, with equal lengths. `into` of every member = the sum of all members'
  // parts, added in the order of ranks and then of the lists: a sum in order, so the bits depend
  // only on the parts. Parts and `into` are Allocate's; `into` may be one of the own parts. No
  // parts: the member adds nothing.
  //
  // Says, to every member alike, whether all values of the sum are finite: each looks at those that
  // it adds while they are at hand.
  //
  // N ranks, n values, k parts in all: each rank adds n / N values of every part and writes them
  // to all. 2 meetings; (k + N) n values of memory traffic in all.
  virtual bool SumInOrder(std::span<const std::span<float>> parts, std::span<float> into) = 0;

  // Returns when `done` says so of what rank `whom` writes here; it is asked again and again.
  // Throws PeerLost if the group is finished; after transport.timeout_s `whom` is lost.
  virtual void Await(int whom, FunctionRef<bool()> done) = 0;

  static constexpr size_t kMostParts = 64;  // of one member
};

}  // namespace trireme
