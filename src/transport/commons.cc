#include "transport/commons.h"

#include "base/assert.h"
#include "transport/broadcast.h"

namespace trireme {

std::span<float> AllocateForAll(Group& group, Tag tag, size_t floats) {
  TRIREME_ASSERT(group.commons());
  float* data = nullptr;
  if (group.rank() == 0) data = group.commons()->Allocate(floats).data();
  Broadcast(group, tag, 0, std::as_writable_bytes(std::span(&data, 1)));
  return {data, floats};
}

}  // namespace trireme
