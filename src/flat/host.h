#pragma once
#include "flat/device.h"

namespace trireme {

class Team;

// The processor itself: work runs at once, on the calling thread, so every recorded event has
// fired. Long slices are split over `team`, if there is one; bits do not depend on it.
class HostDevice : public Device {
 public:
  HostDevice() = default;
  explicit HostDevice(Team* team) : team_(team) {}

  std::string_view name() const override { return "cpu"; }
  bool host_visible() const override { return true; }
  const FlatTable& table() const override;
  // Queues of NewQueue() use the device's team, so only the thread that owns the team may use them;
  // other threads take a queue of their own team, or of none.
  std::unique_ptr<Queue> NewQueue() override { return NewQueue(team_); }
  std::unique_ptr<Queue> NewQueue(Team* team);
  Slice Allocate(size_t floats) override;
  void Free(Slice slice) noexcept override;

 private:
  Team* team_ = nullptr;
};

}  // namespace trireme
