#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "base/function_ref.h"
#include "flat/queue.h"
#include "flat/slice.h"

namespace trireme {

// Devices of several ranks that add up their slices among themselves: the host enqueues and does
// not wait. One object per rank. Members enqueue the same sums in the same order.
//
// A member that never comes leaves the others waiting in their queues; nobody here finds out.
// Whoever does, by other ways, calls Abort, on every rank.
class DeviceGroup {
 public:
  virtual ~DeviceGroup() = default;  // on all members when their sums are done, or after Abort

  // Enqueues: the slice of every member becomes the sum of all members' slices, which have equal
  // lengths. The order of additions depends on the number of members. One thread at a time; throws
  // Error after Abort.
  virtual void Sum(Queue& queue, Slice slice) = 0;

  // What is known to have failed so far, in words; empty: nothing. Any thread.
  virtual std::string Failure() { return ""; }

  // Ends this member's sums, those that wait in queues too: their slices then hold anything, and
  // the queues go on. Others may wait for them until they abort as well. Any thread, any number of
  // times.
  virtual void Abort() noexcept = 0;
};

// What makes groups of a rank's device with those of others. Thread-safe; outlives its groups.
class DeviceGroups {
 public:
  virtual ~DeviceGroups() = default;

  virtual std::string name() const = 0;      // what adds up, with its version; empty: see problem
  virtual std::string problem() const = 0;   // why there can be no group; empty: there can
  virtual std::string identity() const = 0;  // of the device: no other in the job's machines has it

  // What the members of a new group have in common: one of them makes it and tells the others.
  using Id = std::array<std::byte, 128>;
  virtual Id NewId() = 0;
  // Returns when all members have called it, each on a device of its own. Meanwhile calls `look`
  // now and then, which throws to give up.
  virtual std::unique_ptr<DeviceGroup> Join(const Id& id, int rank, int size,
                                            FunctionRef<void()> look) = 0;
};

}  // namespace trireme
