#pragma once
#include <algorithm>
#include <span>
#include <type_traits>
#include <utility>

#include "flat/device.h"

namespace trireme {

// Owns host memory that a device reaches by itself (Device::AllocateHost): zeroed. Drain the queues
// that use it before it goes away.
template <class T>
class HostBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  HostBuffer() = default;
  HostBuffer(Device& device, size_t size)
      : device_(&device),
        values_(static_cast<T*>(size ? device.AllocateHost(size * sizeof(T)) : nullptr), size) {}
  HostBuffer(Device& device, std::span<const T> values) : HostBuffer(device, values.size()) {
    std::ranges::copy(values, values_.begin());
  }
  HostBuffer(HostBuffer&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)), values_(std::exchange(other.values_, {})) {}
  HostBuffer& operator=(HostBuffer&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(values_, other.values_);
    return *this;
  }
  ~HostBuffer() {
    if (values_.data()) device_->FreeHost(values_.data(), values_.size_bytes());
  }

  std::span<T> values() const { return values_; }
  operator std::span<T>() const { return values_; }
  operator std::span<const T>() const { return values_; }
  T* data() const { return values_.data(); }
  size_t size() const { return values_.size(); }
  T& operator[](size_t i) const { return values_[i]; }

 private:
  Device* device_ = nullptr;
  std::span<T> values_;
};

// While it lives, a device reaches host memory of somebody else's by itself (Device::Register).
class HostRegistration {
 public:
  HostRegistration() = default;
  HostRegistration(Device& device, std::span<std::byte> memory)
      : device_(&device), memory_(memory) {
    device.Register(memory);
  }
  HostRegistration(HostRegistration&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)), memory_(other.memory_) {}
  HostRegistration& operator=(HostRegistration&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~HostRegistration() {
    if (device_) device_->Unregister(memory_);
  }

 private:
  Device* device_ = nullptr;
  std::span<std::byte> memory_;
};

}  // namespace trireme
