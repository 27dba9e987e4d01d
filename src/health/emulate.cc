#include "health/emulate.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"

namespace trireme {

Pretence::Pretence(const EmulateOptions& options, int rank, int ranks)
    : step_s_(options.step_ms * 1e-3), spread_(options.spread) {
  const auto slow = ParseSlow(options.slow, "emulate.slow", ranks);
  const auto hang = ParseRankAndNumber(options.hang, "emulate.hang", ranks);
  const auto flip = ParseRankAndNumber(options.flip, "emulate.flip", ranks);
  if (slow && slow->rank == rank) {
    sleep_s_ = slow->more_ms * 1e-3;
    factor_ = slow->factor;
  }
  if (hang && hang->rank == rank) hang_step_ = hang->number;
  if (flip && flip->rank == rank) flip_step_ = flip->number;
}

void Pretence::InForward(int64_t step, double share) {
  const double step_s = step_s_ > 0 ? step_s_ * share : computed_s_;
  left_s_ = std::max(0.0, sleep_s_ + factor_ * step_s - computed_s_);
  if (!spread_) Sleep(1);
  while (step == hang_step_) std::this_thread::sleep_for(std::chrono::hours(1));
}

double Pretence::Sleep(double part) const {
  const double seconds = part * left_s_;
  if (seconds <= 0) return 0;
  const Stopwatch watch;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  return watch.seconds();
}

}  // namespace trireme
