#pragma once
#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

#include "hwy/aligned_allocator.h"

// For tests: the scratch memory of a kernel, with a stretch behind it that tells whether the kernel
// wrote beyond what it asked for.

namespace trireme::cpu {

class GuardedScratch {
 public:
  explicit GuardedScratch(size_t floats)
      : floats_(floats), memory_(hwy::AllocateAligned<float>(floats + kGuard)) {
    // What a kernel does not write it must not read.
    std::fill_n(data(), floats, std::numeric_limits<float>::quiet_NaN());
    std::ranges::fill(guard(), kUntouched);
  }

  float* data() const { return memory_.get(); }
  bool IsWhole() const {
    return std::ranges::all_of(guard(), [](float x) { return x == kUntouched; });
  }

 private:
  // As long as a panel, or a kernel that is far off would write behind it.
  static constexpr size_t kGuard = 16 * 1024;
  static constexpr float kUntouched = 12345.678f;
  std::span<float> guard() const { return {data() + floats_, kGuard}; }

  size_t floats_;
  hwy::AlignedFreeUniquePtr<float[]> memory_;
};

}  // namespace trireme::cpu
