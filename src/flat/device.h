#pragma once
#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "flat/queue.h"
#include "flat/slice.h"

namespace trireme {

struct FlatTable;

// Memory and queues of one kind of processor, and arithmetic on its slices. Thread-safe.
// Slices of two devices never meet in one operation; data crosses through the host (Put, Get).
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view model() const { return name(); }  // in its maker's words
  virtual bool host_visible() const = 0;  // may the host touch its memory directly?
  virtual const FlatTable& table() const = 0;
  virtual std::unique_ptr<Queue> NewQueue() = 0;
  virtual Slice Allocate(size_t floats) = 0;  // zeroed, 64-byte aligned
  virtual void Free(Slice slice) noexcept = 0;
  virtual size_t allocated_bytes() const = 0;  // that Allocate gave and Free has not taken back
  // That Allocate can still give, if nobody else takes it. Where host_visible(): not known.
  virtual size_t free_bytes() const { return std::numeric_limits<size_t>::max(); }

  // Host memory that the device reaches by itself. Copies to and from it are enqueued like all
  // work; other host memory a step never copies to or from (flat::Put, flat::Get, Batch). Where
  // host_visible() it is plain memory. Owned by a HostBuffer (flat/host_memory.h).
  virtual void* AllocateHost(size_t bytes) = 0;  // zeroed, 64-byte aligned
  virtual void FreeHost(void* memory, size_t bytes) noexcept = 0;
  // Makes such memory of somebody else's, which several processes may share. It begins at a
  // multiple of 64 bytes; two stretches never overlap, but may have a page in common, and another
  // device of this process may have the same. Owned by a HostRegistration.
  virtual void Register(std::span<std::byte> memory) = 0;
  virtual void Unregister(std::span<std::byte> memory) noexcept = 0;
};

// Owns a slice. Drain the queues that use it before it goes away.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device& device, size_t floats) : slice_(device.Allocate(floats)) {}
  Buffer(Buffer&& other) noexcept : slice_(other.slice_) { other.slice_ = {}; }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(slice_, other.slice_);
    return *this;
  }
  ~Buffer() {
    if (slice_.device) slice_.device->Free(slice_);
  }
  const Slice& slice() const { return slice_; }
  operator Slice() const { return slice_; }

 private:
  Slice slice_;
};

}  // namespace trireme
