#include "flat/staging.h"

#include <algorithm>

#include "flat/arithmetic.h"

namespace trireme {
namespace {

// Floats that cross at a time: of a whole model a device would have to lend too much.
constexpr size_t kAtATime = 1 << 20;

HostBuffer<float> MemoryFor(const Queue& queue, size_t floats) {
  return {queue.device(), std::min(floats, kAtATime)};
}

}  // namespace

Staging::Staging(Device& device, size_t floats) : copies_(!device.host_visible()) {
  if (!copies_) return;
  own_ = HostBuffer<float>(device, floats);
  host_ = own_;
}

Staging::Staging(Device& device, std::span<float> memory) : copies_(!device.host_visible()) {
  if (!copies_) return;
  registered_ = HostRegistration(device, std::as_writable_bytes(memory));
  host_ = memory;
}

std::span<float> Staging::Get(Queue& queue, Slice slice, size_t at) const {
  const std::span<float> host = Host(slice, at);
  if (copies_) flat::Get(queue, slice, host);
  return host;
}

void Staging::Put(Queue& queue, Slice slice, size_t at) const {
  if (copies_) flat::Put(queue, Host(slice, at), slice);
}

void flat::PutNow(Queue& q, std::span<const float> host, Slice to) {
  TRIREME_ASSERT(host.size() == to.size);
  if (q.device().host_visible()) {
    Put(q, host, to);
    return q.Sync();
  }
  const HostBuffer<float> memory = MemoryFor(q, host.size());
  for (size_t at = 0; at < host.size(); at += memory.size()) {
    const auto part = memory.values().first(std::min(memory.size(), host.size() - at));
    std::ranges::copy(host.subspan(at, part.size()), part.begin());
    Put(q, part, to.Sub(at, part.size()));
    q.Sync();  // the memory is used again
  }
}

void flat::GetNow(Queue& q, Slice from, std::span<float> host) {
  TRIREME_ASSERT(host.size() == from.size);
  if (q.device().host_visible()) {
    Get(q, from, host);
    return q.Sync();
  }
  const HostBuffer<float> memory = MemoryFor(q, host.size());
  for (size_t at = 0; at < host.size(); at += memory.size()) {
    const auto part = memory.values().first(std::min(memory.size(), host.size() - at));
    Get(q, from.Sub(at, part.size()), part);
    q.Sync();
    std::ranges::copy(part, host.begin() + std::ptrdiff_t(at));
  }
}

}  // namespace trireme
