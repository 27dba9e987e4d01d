#pragma once
#include <cstddef>
#include <span>

#include "base/assert.h"

namespace trireme {

class Device;

// A stretch of flat float memory on a device. Owns nothing (see Buffer in flat/device.h).
// `data` may be read or written by the host only where device->host_visible().
struct Slice {
  float* data = nullptr;
  size_t size = 0;
  Device* device = nullptr;

  Slice Sub(size_t at, size_t length) const {
    TRIREME_ASSERT(at <= size && length <= size - at);
    return {data + at, length, device};
  }
  std::span<float> host() const;  // asserts that the host may touch it
};

}  // namespace trireme
