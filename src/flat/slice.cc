#include "flat/slice.h"

#include "flat/device.h"

namespace trireme {

std::span<float> Slice::host() const {
  TRIREME_ASSERT(size == 0 || (device && device->host_visible()));
  return {data, size};
}

}  // namespace trireme
