#include "trainer/early_hint.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "optimizer/rules.h"
#include "trainer/chance_level.h"

namespace trireme {
namespace {

constexpr int64_t kStepsToHint = 100;    // fewer say little
constexpr double kMostlyOneClass = 0.6;  // of the training samples

// The class that every test sample is taken for, if they are of several.
std::optional<size_t> OnlyPrediction(const Confusion& confusion) {
  std::optional<size_t> only;
  int labels = 0;
  for (const auto& row : confusion) {
    bool any = false;
    for (size_t c = 0; c < row.size(); ++c) {
      if (row[c] == 0) continue;
      if (only && *only != c) return {};
      only = c;
      any = true;
    }
    labels += any;
  }
  return labels > 1 ? only : std::nullopt;
}

double ShareOfClass(const Source& train, size_t label) {
  int64_t count = 0;
  for (int64_t i = 0; i < train.size(); ++i) count += size_t(train.label(i)) == label;
  return double(count) / double(train.size());
}

std::string DeadText(const Job& job, const DeadUnits& units) {
  const double rate = job.recipe.optimizer.lr, usual = UsualRate(job.recipe.optimizer);
  return fmt::format("{:.0f} % of the {} units of {} never fire (dead ReLUs); try --lr {:g}",
                     100 * units.share(), units.units, units.layer,
                     rate > usual ? usual : rate / 10);
}

// What memory or a kernel does not allow is no fault of the run.
std::optional<DeadUnits> Probe(FunctionRef<std::optional<DeadUnits>()> find_dead) {
  if (!find_dead) return {};
  try {
    return find_dead();
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

bool IsTimeForHint(const Job& job, int64_t step) {
  const double warmup = job.recipe.optimizer.warmup_epochs * double(job.plan.steps_per_epoch());
  return step >= kStepsToHint && double(step) >= warmup && step < job.plan.steps &&
         !FindRule(job.recipe.optimizer.name).whole;
}

std::string EarlyHint(const Job& job, const EpochRecord& record, const Evaluation& test,
                      FunctionRef<std::optional<DeadUnits>()> find_dead) {
  const double train_loss = record.train_loss.value_or(NAN);
  const std::string guessing = NoBetterThanGuessing(job, train_loss, test.loss);
  const auto only = OnlyPrediction(test.confusion);
  if (guessing.empty() && !only) return "";
  const std::string head =
      guessing.empty() ? fmt::format("after epoch {:g} every test sample is taken for {}",
                                     record.epoch, job.data.classes[*only])
                       : fmt::format("after epoch {:g} the network has learned nothing so far: {}",
                                     record.epoch, guessing);
  if (const auto dead = Probe(find_dead)) {
    return fmt::format("{}; {}", head, DeadText(job, *dead));
  }
  if (only && job.class_weights.empty()) {
    const double share = ShareOfClass(*job.data.train, *only);
    if (share >= kMostlyOneClass) {
      return fmt::format("{}; {:.0f} % of the training samples are {}: try --set data.balance=true",
                         head, 100 * share, job.data.classes[*only]);
    }
  }
  const std::string rate = OtherRate(job);
  return rate.empty() ? "" : fmt::format("{}; {}", head, rate);
}

}  // namespace trireme
