#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "transport/deadline.h"

namespace trireme {

// By heartbeats: how regularly somebody is heard, and whether the silence is too long: longer than
// the mean of the gaps so far and eight times their deviation (the estimates of Jacobson 1988). One
// thread.
class FailureDetector {
 public:
  // Never overdue before `floor_s`, always after `ceiling_s`.
  FailureDetector(double floor_s, double ceiling_s) : floor_s_(floor_s), ceiling_s_(ceiling_s) {}

  void Beat(Deadline now) {
    if (last_) {
      const double gap = Seconds(now - *last_);
      deviation_ += (std::abs(gap - mean_) - deviation_) / 8;
      mean_ += (gap - mean_) / 8;
    }
    last_ = now;
  }
  double limit_s() const {
    return std::min(ceiling_s_, std::max(floor_s_, mean_ + 8 * deviation_));
  }
  // Seconds of silence, if they are too many; else 0. Who was never heard is not overdue.
  double overdue_s(Deadline now) const {
    const double silent = last_ ? Seconds(now - *last_) : 0;
    return silent > limit_s() ? silent : 0;
  }

 private:
  static double Seconds(Deadline::duration d) { return std::chrono::duration<double>(d).count(); }
  const double floor_s_, ceiling_s_;
  std::optional<Deadline> last_;
  double mean_ = 1, deviation_ = 0.25;  // seconds
};

}  // namespace trireme
