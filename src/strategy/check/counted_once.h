#pragma once
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "strategy/server/lease_table.h"
#include "strategy/step/work.h"

namespace trireme {

// How often each position of the run counted.
class CountedOnce {
 public:
  explicit CountedOnce(const Plan& plan) : samples_(plan.samples) {}
  void Close(const Lease& lease) {
    std::lock_guard lock(mutex_);
    for (int64_t p = lease.begin; p < lease.end; ++p) ++counted_[lease.epoch * samples_ + p];
  }
  void ExpectOnce(int64_t positions) {
    EXPECT_EQ(int64_t(counted_.size()), positions);
    for (const auto& [position, times] : counted_) EXPECT_EQ(times, 1) << position;
  }
  std::map<int64_t, int> counted() {
    std::lock_guard lock(mutex_);
    return counted_;
  }
  void Clear() {
    std::lock_guard lock(mutex_);
    counted_.clear();
  }

 private:
  const int64_t samples_;
  std::mutex mutex_;
  std::map<int64_t, int> counted_;
};

}  // namespace trireme
