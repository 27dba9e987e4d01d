#include "data/thread_tuner.h"

#include <algorithm>
#include <cmath>

namespace trireme {
namespace {

constexpr double kHardlyWaits = 0.02;  // of the time
constexpr double kHelped = 1.03;       // times as fast as before

}  // namespace

ThreadTuner::ThreadTuner(const LoaderThreads& threads)
    : most_(threads.most), threads_(threads.first), settled_(threads.first >= threads.most) {}

void ThreadTuner::Add(double seconds, double waited_s, int64_t taken) {
  if (settled_ || !(seconds > 0) || taken <= 0) return;
  const double rate = static_cast<double>(taken) / seconds;
  if (threads_before_ > 0 && rate < kHelped * rate_before_) {
    threads_ = threads_before_;
    settled_ = true;
    return;
  }
  if (waited_s <= kHardlyWaits * seconds) return;
  if (threads_ == most_) {
    settled_ = true;
    return;
  }
  threads_before_ = threads_;
  rate_before_ = rate;
  // Fetching is what takes the time: so many would hide it behind computing.
  const double enough =
      std::ceil(threads_ * seconds / std::max(seconds - waited_s, 1e-9 * seconds));
  threads_ = static_cast<int>(std::clamp<double>(enough, threads_ + 1, most_));
}

}  // namespace trireme
