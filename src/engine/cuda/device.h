#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cuda/clock.h"
#include "flat/device.h"

namespace trireme::cuda {

// A card. Thread-safe. Memory is counted by what it is for: an error that there is none left says
// where it went.
class CudaDevice : public Device {
 public:
  // `most_bytes` limits what may be allocated; 0: all that the card has.
  explicit CudaDevice(int index, size_t most_bytes = 0);
  ~CudaDevice() override;

  std::string_view name() const override { return name_; }  // cuda:0
  std::string_view model() const override { return properties_.name; }
  bool host_visible() const override { return false; }
  const FlatTable& table() const override;
  std::unique_ptr<Queue> NewQueue() override;
  Slice Allocate(size_t floats) override;
  void Free(Slice slice) noexcept override;
  size_t allocated_bytes() const override;  // with AllocateBytes
  size_t free_bytes() const override;       // likewise
  void* AllocateHost(size_t bytes) override;
  void FreeHost(void* memory, size_t bytes) noexcept override;
  void Register(std::span<std::byte> memory) override;
  void Unregister(std::span<std::byte> memory) noexcept override;

  int index() const { return index_; }
  const cudaDeviceProp& properties() const { return properties_; }

  // The calling thread's CUDA calls go to this card from here on. Whoever launches something or
  // calls a library does this first; it is cheap.
  void Select() const;

  EventClock& clock() { return clock_; }

  // Memory for anything but slices, not zeroed; `what` it is for ("activations", "workspace").
  void* AllocateBytes(size_t bytes, std::string_view what);
  void FreeBytes(void* memory) noexcept;

 private:
  struct Block {
    size_t bytes;
    std::string_view what;  // a key of used_
  };
  [[noreturn]] void ThrowNoMemory(size_t bytes, std::string_view what) const;

  const int index_;
  const std::string name_;
  const size_t most_bytes_;
  cudaDeviceProp properties_ = {};
  cudaStream_t zeroing_ = nullptr;  // Allocate's
  EventClock clock_;
  mutable std::mutex mutex_;
  std::map<void*, Block> blocks_;                    // guarded by mutex_
  std::map<std::string, size_t, std::less<>> used_;  // bytes by what they are for; mutex_
  size_t allocated_ = 0;                             // bytes; guarded by mutex_
};

// Owns bytes of a card.
class CardMemory {
 public:
  CardMemory() = default;
  CardMemory(CudaDevice& device, size_t bytes, std::string_view what)
      : device_(&device), data_(device.AllocateBytes(bytes, what)), bytes_(bytes) {}
  CardMemory(CardMemory&& other) noexcept { *this = std::move(other); }
  CardMemory& operator=(CardMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~CardMemory() {
    if (data_) device_->FreeBytes(data_);
  }
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  CudaDevice* device_ = nullptr;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

class RecordedEvent;

// Events of one kind, used again when nobody holds them: as many as are held at one time.
class EventPool {
 public:
  EventPool(CudaDevice& card, bool timed) : card_(card), timed_(timed) {}
  std::shared_ptr<RecordedEvent> Take();

 private:
  CudaDevice& card_;
  const bool timed_;
  std::vector<std::shared_ptr<RecordedEvent>> events_;
  size_t next_ = 0;  // where to look for a free one
};

// A stream.
class CudaQueue : public Queue {
 public:
  // Where both have work, one that yields comes second.
  explicit CudaQueue(CudaDevice& device, bool yields = false);
  ~CudaQueue() override;  // after all work

  Event Record() override;
  Event Mark() override;
  void Wait(const Event& event) override;

  cudaStream_t stream() const { return stream_; }
  CudaDevice& card() const { return card_; }
  // Of this queue's work alone: where a sum over a slice leaves its parts (engine/cuda/flat.h).
  double* sums() const { return static_cast<double*>(sums_.data()); }

 private:
  Event RecordOne(EventPool& pool);

  CudaDevice& card_;
  cudaStream_t stream_ = nullptr;
  CardMemory sums_;
  EventPool points_, marks_;
};

}  // namespace trireme::cuda
