#pragma once
#include "flat/device.h"

namespace trireme {

// The processor itself: work runs at once, on the calling thread, so every recorded event has
// fired.
class HostDevice : public Device {
 public:
  std::string_view name() const override { return "cpu"; }
  bool host_visible() const override { return true; }
  const FlatTable& table() const override;
  std::unique_ptr<Queue> NewQueue() override;
  Slice Allocate(size_t floats) override;
  void Free(Slice slice) noexcept override;
};

}  // namespace trireme
