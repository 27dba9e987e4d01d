#pragma once
#include <cstdint>

#include "recipe/emulate_options.h"

namespace trireme {

// What one rank pretends in its steps. One thread.
class Pretence {
 public:
  Pretence(const EmulateOptions& options, int rank, int ranks);
  bool active() const { return step_s_ > 0 || sleep_s_ > 0 || factor_ > 1 || hang_step_ >= 0; }
  bool flips(int64_t step) const { return step == flip_step_; }
  // Sleeps for what the step takes longer than computing, or with spreads() leaves that to Sleep.
  // Does not return from the step in which it hangs. With emulate.step_ms what the last step really
  // computed is a part of the time: a step takes so long, whoever else needs the processors.
  // `share`: of the samples, 1 for as many as each worker has where all have equally many.
  void InForward(int64_t step, double share);
  bool spreads() const { return spread_; }
  // A part of the step's sleep; gives the seconds that it took. In [0, 1], for forward a third
  // altogether and for backward the rest.
  double Sleep(double part) const;
  static constexpr double kForwardPart = 1.0 / 3;
  void Computed(double seconds) { computed_s_ = seconds; }

 private:
  double step_s_ = 0;   // of a whole step; 0: as long as it takes
  double sleep_s_ = 0;  // besides
  double factor_ = 1;
  bool spread_ = false;
  double computed_s_ = 0;
  double left_s_ = 0;  // of this step, to sleep
  int64_t hang_step_ = -1;
  int64_t flip_step_ = -1;
};

}  // namespace trireme
