#pragma once
#include <algorithm>
#include <mutex>

#include "transport/deadline.h"

namespace trireme {

// Slows one direction of a rank down to a number of bytes per second (transport.throttle): whoever
// has moved bytes asks how long to pause. Also says how far away it is (transport.latency_ms; see
// DelayLine). Thread-safe.
class RateLimiter {
 public:
  // What a late wake-up lost is made good, up to this; idle time is not saved beyond it.
  static constexpr double kMadeGoodSeconds = 5e-3;

  explicit RateLimiter(double bytes_per_s, double latency_s = 0)
      : rate_(bytes_per_s), latency_s_(latency_s) {}

  bool slow() const { return rate_ > 0 || latency_s_ > 0; }
  double latency_s() const { return latency_s_; }

  // How much to move before asking again.
  size_t piece() const {
    return rate_ > 0 ? std::max<size_t>(size_t(rate_ * 1e-3), 16 << 10) : 1u << 30;
  }

  // The moment from which more may move.
  Deadline Book(size_t bytes) {
    if (rate_ <= 0) return {};
    const Deadline now = std::chrono::steady_clock::now();
    std::lock_guard lock(mutex_);
    free_ = std::max(free_, now - InTicks(kMadeGoodSeconds)) + InTicks(double(bytes) / rate_);
    return free_;
  }

 private:
  static Deadline::duration InTicks(double seconds) {
    return std::chrono::duration_cast<Deadline::duration>(std::chrono::duration<double>(seconds));
  }

  const double rate_, latency_s_;
  std::mutex mutex_;
  Deadline free_{};  // guarded by mutex_
};

}  // namespace trireme
