#pragma once
#include <memory>
#include <string_view>

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
  virtual bool host_visible() const = 0;  // may the host touch its memory directly?
  virtual const FlatTable& table() const = 0;
  virtual std::unique_ptr<Queue> NewQueue() = 0;
  virtual Slice Allocate(size_t floats) = 0;  // zeroed, 64-byte aligned
  virtual void Free(Slice slice) noexcept = 0;
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
