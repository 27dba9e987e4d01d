#include "optimizer/schedule.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/assert.h"
#include "base/error.h"

namespace trireme {
namespace {

constexpr double kCycleRise = 0.3;    // one-cycle: share of the run in which the rate rises
constexpr double kCycleBegin = 0.04;  // one-cycle: of the rate
constexpr int kUsualWait = 5;         // plateau: evaluations

struct ScheduleDef {
  const char* name;
  Schedule::Kind kind;
  bool has_least = false;  // lr_min
};
constexpr ScheduleDef kSchedules[] = {
    {"constant", Schedule::Kind::kConstant},     {"step", Schedule::Kind::kStep},
    {"cosine", Schedule::Kind::kCosine, true},   {"one-cycle", Schedule::Kind::kOneCycle, true},
    {"plateau", Schedule::Kind::kPlateau, true}, {"rising", Schedule::Kind::kRising, true}};

const ScheduleDef& FindSchedule(const std::string& name) {
  for (const ScheduleDef& schedule : kSchedules) {
    if (name == schedule.name) return schedule;
  }
  throw UsageError("optimizer.schedule must be one of {}, got \"{}\"",
                   fmt::join(ScheduleNames(), ", "), name);
}

// `way` of the way along half a cosine.
double HalfCosine(double from, double to, double way) {
  return to + (from - to) * 0.5 * (1 + std::cos(std::numbers::pi * way));
}

void RefuseContradictions(const OptimizerOptions& o, double base) {
  const bool decays = !o.decay_epochs.empty() || o.decay_every > 0;
  if (o.schedule == "step") {
    if (!decays) {
      throw UsageError(
          "optimizer.schedule is \"step\", but nothing says when the rate falls; set "
          "optimizer.decay_epochs or optimizer.decay_every");
    }
    if (!o.decay_epochs.empty() && o.decay_every > 0) {
      throw UsageError("optimizer.decay_epochs and optimizer.decay_every are both set; keep one");
    }
  } else if (decays) {
    throw UsageError("optimizer.{} needs optimizer.schedule = \"step\", but it is \"{}\"",
                     o.decay_epochs.empty() ? "decay_every" : "decay_epochs", o.schedule);
  }
  if (o.decay_patience > 0 && o.schedule != "plateau") {
    throw UsageError(
        "optimizer.decay_patience needs optimizer.schedule = \"plateau\", but it is \"{}\"",
        o.schedule);
  }
  const bool rises = o.schedule == "rising";
  if (rises && o.lr_min <= 0) {
    throw UsageError(
        "optimizer.schedule = \"rising\" begins at optimizer.lr_min, which must be above 0, got {}",
        o.lr_min);
  }
  if (FindSchedule(o.schedule).has_least) {
    if (o.lr_min > base) {
      throw UsageError("optimizer.lr_min {} is above the learning rate {}", o.lr_min, base);
    }
  } else if (o.lr_min != 0) {
    throw UsageError(
        "optimizer.lr_min = {:g} has no effect with optimizer.schedule = \"{}\"; leave it out",
        o.lr_min, o.schedule);
  }
}

int64_t Steps(double epochs, int64_t steps_per_epoch) {
  return std::llround(epochs * double(steps_per_epoch));
}

}  // namespace

Schedule::Schedule(const OptimizerOptions& o, int64_t steps_per_epoch, int64_t total_steps,
                   int64_t global_batch)
    : kind_(FindSchedule(o.schedule).kind),
      base_(o.scale_lr ? o.lr * double(global_batch) / o.scale_batch : o.lr),
      least_(o.lr_min),
      factor_(o.decay_factor),
      every_(o.decay_every * double(steps_per_epoch)),
      wait_(kind_ != Kind::kPlateau ? 0
            : o.decay_patience      ? o.decay_patience
                                    : kUsualWait),
      warmup_(Steps(o.warmup_epochs, steps_per_epoch)),
      total_(total_steps) {
  TRIREME_ASSERT(steps_per_epoch > 0 && global_batch > 0);
  RefuseContradictions(o, base_);
  for (double epoch : o.decay_epochs) decays_.push_back(Steps(epoch, steps_per_epoch));
  std::sort(decays_.begin(), decays_.end());
}

double Schedule::rate(int64_t step, int64_t falls) const {
  const double planned = Planned(step, falls);
  const bool warms_up = step < warmup_ && kind_ != Kind::kOneCycle;  // which rises by itself
  return warms_up ? planned * double(step + 1) / double(warmup_) : planned;
}

// The last step of the run has the least rate. The top lies between two steps where the rise is no
// whole number of them.
double Schedule::OneCycle(int64_t step) const {
  const double last = double(std::max<int64_t>(total_ - 1, 1));
  const double top = std::min(warmup_ > 0 ? double(warmup_) : kCycleRise * last, last);
  const double at = double(std::min(step, total_ - 1));
  if (at < top) return HalfCosine(kCycleBegin * base_, base_, at / top);
  return top < last ? HalfCosine(base_, least_, (at - top) / (last - top)) : base_;
}

double Schedule::Planned(int64_t step, int64_t falls) const {
  switch (kind_) {
    case Kind::kConstant:
      return base_;
    case Kind::kStep: {
      const double times =
          every_ > 0
              ? std::floor(double(step) / every_)
              : double(std::upper_bound(decays_.begin(), decays_.end(), step) - decays_.begin());
      return base_ * std::pow(factor_, times);
    }
    case Kind::kCosine: {
      if (step <= warmup_) return base_;
      if (step >= total_) return least_;
      return HalfCosine(base_, least_, double(step - warmup_) / double(total_ - warmup_));
    }
    case Kind::kOneCycle:
      return OneCycle(step);
    case Kind::kPlateau:
      return std::max(least_, base_ * std::pow(factor_, double(falls)));
    case Kind::kRising: {
      if (step >= total_ - 1) return base_;
      return least_ * std::pow(base_ / least_, double(step) / double(total_ - 1));
    }
  }
  return base_;
}

std::vector<std::string> ScheduleNames() {
  std::vector<std::string> names;
  for (const ScheduleDef& schedule : kSchedules) names.emplace_back(schedule.name);
  return names;
}

}  // namespace trireme
