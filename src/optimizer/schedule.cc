#include "optimizer/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/assert.h"
#include "base/error.h"

namespace trireme {
namespace {

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
  const bool rises = o.schedule == "rising";
  if (rises && o.lr_min <= 0) {
    throw UsageError(
        "optimizer.schedule = \"rising\" begins at optimizer.lr_min, which must be above 0, got {}",
        o.lr_min);
  }
  if (rises || o.schedule == "cosine") {
    if (o.lr_min > base) {
      throw UsageError("optimizer.lr_min {} is above the learning rate {}", o.lr_min, base);
    }
  } else if (o.lr_min != 0) {
    throw UsageError(
        "optimizer.lr_min needs optimizer.schedule = \"cosine\" or \"rising\", but it is \"{}\"",
        o.schedule);
  }
}

int64_t Steps(double epochs, int64_t steps_per_epoch) {
  return std::llround(epochs * double(steps_per_epoch));
}

}  // namespace

Schedule::Schedule(const OptimizerOptions& o, int64_t steps_per_epoch, int64_t total_steps,
                   int64_t global_batch)
    : base_(o.scale_lr ? o.lr * double(global_batch) / o.scale_batch : o.lr),
      least_(o.lr_min),
      factor_(o.decay_factor),
      every_(o.decay_every * double(steps_per_epoch)),
      warmup_(Steps(o.warmup_epochs, steps_per_epoch)),
      total_(total_steps) {
  TRIREME_ASSERT(steps_per_epoch > 0 && global_batch > 0);
  if (o.schedule == "step") {
    kind_ = Kind::kStep;
  } else if (o.schedule == "cosine") {
    kind_ = Kind::kCosine;
  } else if (o.schedule == "rising") {
    kind_ = Kind::kRising;
  } else if (o.schedule != "constant") {
    throw UsageError("optimizer.schedule must be one of constant, step, cosine, rising, got \"{}\"",
                     o.schedule);
  }
  RefuseContradictions(o, base_);
  for (double epoch : o.decay_epochs) decays_.push_back(Steps(epoch, steps_per_epoch));
  std::sort(decays_.begin(), decays_.end());
}

double Schedule::rate(int64_t step) const {
  const double planned = Planned(step);
  return step < warmup_ ? planned * double(step + 1) / double(warmup_) : planned;
}

double Schedule::Planned(int64_t step) const {
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
      const double way = double(step - warmup_) / double(total_ - warmup_);
      return least_ + (base_ - least_) * 0.5 * (1 + std::cos(std::numbers::pi * way));
    }
    case Kind::kRising: {
      if (step >= total_ - 1) return base_;
      return least_ * std::pow(base_ / least_, double(step) / double(total_ - 1));
    }
  }
  return base_;
}

}  // namespace trireme
