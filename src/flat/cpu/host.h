#pragma once
#include <atomic>

#include "flat/device.h"

namespace trireme {

class Team;
struct SharedTeam;

// The processor itself: work runs at once, on the calling thread, so every recorded event has
// fired. Long slices are split over `team`, if there is one; bits do not depend on it. The team is
// the device's own: nobody else may run it.
class HostDevice : public Device {
 public:
  explicit HostDevice(Team* team = nullptr);
  ~HostDevice() override;

  std::string_view name() const override { return "cpu"; }
  bool host_visible() const override { return true; }
  const FlatTable& table() const override;
  std::unique_ptr<Queue> NewQueue() override;
  Slice Allocate(size_t floats) override;
  void Free(Slice slice) noexcept override;
  size_t allocated_bytes() const override { return allocated_.load(std::memory_order_relaxed); }
  void* AllocateHost(size_t bytes) override;
  void FreeHost(void* memory, size_t bytes) noexcept override;
  void Register(std::span<std::byte>) override {}
  void Unregister(std::span<std::byte>) noexcept override {}

 private:
  std::atomic<size_t> allocated_ = 0;  // bytes
  const std::unique_ptr<SharedTeam> team_;
};

}  // namespace trireme
