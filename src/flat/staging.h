#pragma once
#include <span>

#include "flat/host_memory.h"

namespace trireme {

// Floats of a device where the host may touch them: in place if it can, else as a copy in host
// memory that the device reaches by itself. A slice has a place in the copy, `at`, that the caller
// chooses; where the host works in place there is no copy, and nothing is done. Drain the queues
// that use it before it goes away.
class Staging {
 public:
  Staging() = default;
  Staging(Device& device, size_t floats);
  Staging(Device& device, std::span<float> memory);  // the copy lies in somebody else's memory

  bool copies() const { return copies_; }
  std::span<float> Host(Slice slice, size_t at) const {
    return copies_ ? host_.subspan(at, slice.size) : slice.host();
  }
  // Enqueues a copy of the slice to the host, which may read it when the queue has passed.
  std::span<float> Get(Queue& queue, Slice slice, size_t at) const;
  // Enqueues the way back. The host's floats stay as they are until the queue has passed.
  void Put(Queue& queue, Slice slice, size_t at) const;

 private:
  bool copies_ = false;
  HostBuffer<float> own_;
  HostRegistration registered_;
  std::span<float> host_;
};

// For what happens rarely (a first state, a checkpoint): Put and Get of any host memory. The caller
// waits until the queue has passed, and a device that cannot reach the memory copies twice.
namespace flat {

void PutNow(Queue& q, std::span<const float> host, Slice to);
void GetNow(Queue& q, Slice from, std::span<float> host);

}  // namespace flat
}  // namespace trireme
