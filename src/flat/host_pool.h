#pragma once
#include <mutex>
#include <utility>
#include <vector>

#include "flat/host_memory.h"

namespace trireme {

// Host memory that a device reaches, lent for a while: what came back is lent again. All who take
// from a pool want equally many floats. Thread-safe.
class HostPool {
 public:
  HostBuffer<float> Take(Device& device, size_t floats) {
    {
      const std::lock_guard lock(mutex_);
      if (!spare_.empty()) {
        HostBuffer<float> memory = std::move(spare_.back());
        spare_.pop_back();
        return memory;
      }
    }
    return {device, floats};
  }
  void GiveBack(HostBuffer<float> memory) {
    const std::lock_guard lock(mutex_);
    spare_.push_back(std::move(memory));
  }

 private:
  std::mutex mutex_;
  std::vector<HostBuffer<float>> spare_;  // guarded by mutex_
};

}  // namespace trireme
