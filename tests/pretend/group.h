#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "flat/device_group.h"
#include "pretend/device.h"

namespace trireme {

// What pretended devices of several ranks are connected by: memory that threads and the processes
// that are forked after it was made have in common. A device adds up there what the others have
// left, in the order of ranks; a rank that does not come leaves the others waiting in their queues,
// as a card does.
class PretendWires {
 public:
  // Rank `rank` of every group does this before its sum of this number, from 0.
  struct Fault {
    enum { kNone, kDies, kThrows } kind = kNone;  // its process is killed; Sum throws
    int rank = 0;
    int64_t sum = 0;
  };
  PretendWires() : PretendWires(Fault{}) {}
  explicit PretendWires(Fault fault);
  ~PretendWires();

  int64_t sums() const;  // of all ranks, that were done

  // Of the device of this number; those of two ranks with the same number cannot be one group.
  std::unique_ptr<DeviceGroups> Groups(PretendDevice& device, int number);

 private:
  friend class PretendGroup;
  friend class PretendGroups;
  struct Room;  // of one group
  struct Shared;

  const Fault fault_;
  Shared* shared_;
};

}  // namespace trireme
