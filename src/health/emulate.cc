#include "health/emulate.h"

#include <chrono>
#include <thread>

namespace trireme {

Pretence::Pretence(const EmulateOptions& options, int rank, int ranks)
    : step_s_(options.step_ms * 1e-3) {
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

void Pretence::InForward(int64_t step) const {
  const double step_s = step_s_ > 0 ? step_s_ : computed_s_;
  const double seconds = sleep_s_ + factor_ * step_s - computed_s_;
  if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  while (step == hang_step_) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace trireme
