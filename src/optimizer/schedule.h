#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "optimizer/options.h"

namespace trireme {

// The learning rate as a function of the step, and of how often evaluations have let it fall. A
// value: equal options give equal rates on every rank, and a resumed run goes on where it was.
//
//   constant  lr
//   step      lr * decay_factor^(decays so far)
//   cosine    from lr to lr_min along half a cosine, over the steps after the warm-up
//   one-cycle from lr / 25 up to lr and down to lr_min, along half a cosine each: up over the
//             warm-up, without one over 0.3 of the run (Smith, Topin 2018)
//   plateau   lr * decay_factor^falls, at least lr_min: falls where evaluations get no better
//   rising    from lr_min to lr, by the same factor in every step: a range test (trireme tune)
//
// In the warm-up of w = warmup_epochs * steps_per_epoch steps, step i (from 0) takes the share
// (i + 1) / w, but for one-cycle. With scale_lr, lr counts for a batch of scale_batch samples and
// grows with the global batch (Goyal et al. 2017).
class Schedule {
 public:
  enum class Kind { kConstant, kStep, kCosine, kOneCycle, kPlateau, kRising };

  Schedule() = default;  // stands still: a rate of 0
  // Throws UsageError when the keys contradict each other.
  Schedule(const OptimizerOptions& options, int64_t steps_per_epoch, int64_t total_steps,
           int64_t global_batch);

  double rate(int64_t step, int64_t falls = 0) const;

  // Does it fall after so many evaluations in a row that were no better? Only on a plateau.
  bool FallsAfter(int64_t evaluations) const { return wait_ > 0 && evaluations >= wait_; }
  bool waits() const { return wait_ > 0; }  // for evaluations

 private:
  double Planned(int64_t step, int64_t falls) const;  // without the warm-up
  double OneCycle(int64_t step) const;

  Kind kind_ = Kind::kConstant;
  double base_ = 0;
  double least_ = 0;
  double factor_ = 1;
  double every_ = 0;             // steps; 0: only at decays_
  std::vector<int64_t> decays_;  // the first steps at a lower rate, ascending
  int64_t wait_ = 0;             // plateau: evaluations
  int64_t warmup_ = 0;           // steps
  int64_t total_ = 0;            // steps
};

std::vector<std::string> ScheduleNames();  // for optimizer.schedule

}  // namespace trireme
