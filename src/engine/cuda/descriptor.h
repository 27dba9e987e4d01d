#pragma once
#include <span>
#include <string_view>
#include <utility>

#include "engine/cuda/libraries.h"

namespace trireme::cuda {

// A descriptor of cuDNN's backend: made, told its attributes, finished. Owned.
class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(const Libraries& libraries, cudnnBackendDescriptorType_t type)
      : libraries_(&libraries) {
    libraries.Check(libraries.cudnnBackendCreateDescriptor(type, &descriptor_),
                    "cudnnBackendCreateDescriptor");
  }
  Descriptor(Descriptor&& other) noexcept { *this = std::move(other); }
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(libraries_, other.libraries_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Descriptor() {
    if (descriptor_) libraries_->cudnnBackendDestroyDescriptor(descriptor_);
  }

  cudnnBackendDescriptor_t get() const { return descriptor_; }

  template <class T>
  Descriptor& Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  std::span<const T> values) {
    libraries_->Check(libraries_->cudnnBackendSetAttribute(descriptor_, name, type,
                                                           int64_t(values.size()), values.data()),
                      "cudnnBackendSetAttribute");
    return *this;
  }
  template <class T>
  Descriptor& Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  const T& value) {
    return Set(name, type, std::span<const T>(&value, 1));
  }
  Descriptor& Set(cudnnBackendAttributeName_t name, std::span<const int64_t> values) {
    return Set(name, CUDNN_TYPE_INT64, values);
  }
  Descriptor& Set(cudnnBackendAttributeName_t name, const Descriptor& other) {
    return Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.descriptor_);
  }

  cudnnStatus_t TryFinish() { return libraries_->cudnnBackendFinalize(descriptor_); }
  Descriptor& Finish(std::string_view what) {
    libraries_->Check(TryFinish(), what);
    return *this;
  }

 private:
  const Libraries* libraries_ = nullptr;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

}  // namespace trireme::cuda
