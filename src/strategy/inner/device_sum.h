#pragma once
#include <memory>
#include <mutex>
#include <string>

#include "flat/device_group.h"
#include "flat/work_times.h"
#include "strategy/inner/inner.h"
#include "strategy/inner/pulse.h"

namespace trireme {

// Why the devices of a group's ranks cannot add among themselves; empty: they can. All members call
// it, each with what makes groups of its device, and get the same words.
std::string WhyNoDeviceSum(DeviceGroups& devices, Group& group);

// Sums summands over a group's devices, which do it among themselves (NCCL), bucket by bucket, on a
// queue of its own after each bucket's event. The update waits for the last one in the replica's
// queue: the host waits for nothing. The order of additions depends on the number of ranks.
//
// A rank that is lost leaves the others' devices waiting. The pulse finds out and aborts their
// sums, and whoever waited for them calls Check before it uses what came out.
class InnerDeviceSum : public Inner {
 public:
  // All members call it; `devices` outlives this.
  InnerDeviceSum(DeviceGroups& devices, Group& group);
  ~InnerDeviceSum() override;

  void Begin(Replica& replica) override;
  void BeforeStep(Replica& replica) override;
  bool Listens() const override { return true; }
  void BucketReady(Replica& replica, const Bucket& bucket, const Event& event) override;
  void Check() override { pulse_.Check(); }
  void GiveUp(std::string_view why) noexcept override;
  double waited_s() const override { return waited_.seconds(); }
  double busy_s() const override { return busy_.seconds(); }
  Volume volume() const override;

 protected:
  void Reduce(Replica& replica) override;

 private:
  void Join(DeviceGroups& devices);
  std::shared_ptr<DeviceGroup> joined();  // for the pulse's thread; null: not yet

  Group& group_;
  const int exceptions_;  // under way when this was made
  std::mutex mutex_;
  std::shared_ptr<DeviceGroup> devices_;  // written under mutex_
  GroupPulse pulse_;                      // its thread uses what is above
  std::unique_ptr<Queue> queue_;
  int bucket_ = 0;  // of this step
  uint64_t summed_bytes_ = 0;
  WorkTimes waited_, busy_;
};

}  // namespace trireme
