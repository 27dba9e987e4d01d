#include "trainer/chance_level.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "graph/models/losses.h"
#include "optimizer/rules.h"

namespace trireme {
namespace {

constexpr int64_t kFewSteps = 20;         // fewer say nothing
constexpr int64_t kShortRun = 500;        // steps: perhaps it is only too short
constexpr double kNothingToLearn = 1e-3;  // (nearly) all samples are of one class
constexpr double kAlmost = 0.99;          // of the loss of guessing: so much is chance
constexpr double kNear = 3;               // times the usual rate, or a part: it is not the rate

// Of the training samples.
std::vector<double> Shares(const Source& train, int classes) {
  std::vector<double> shares(size_t(classes), 0.0);
  for (int64_t i = 0; i < train.size(); ++i) {
    const int32_t label = train.label(i);
    if (label >= 0 && label < classes) shares[size_t(label)] += 1.0 / double(train.size());
  }
  return shares;
}

std::string Advice(const Job& job, int64_t steps) {
  const OptimizerOptions& optimizer = job.recipe.optimizer;
  if (FindRule(optimizer.name).whole) return "try more --epochs or another --seed";
  const double usual = UsualRate(optimizer);
  if (optimizer.lr > kNear * usual || optimizer.lr < usual / kNear) {
    return fmt::format("try --lr {:g}", usual);
  }
  if (steps < kShortRun) return "try more --epochs";
  return fmt::format("try --lr {:g}", optimizer.lr / 10);
}

}  // namespace

double GuessingLoss(const ModelOptions& model, const Source& train, int classes) {
  return FindLoss(model.loss).guessing(Shares(train, classes), model.smoothing);
}

std::string LearnedNothing(const Job& job, const Summary& summary) {
  const int classes = int(job.data.classes.size());
  if (summary.steps < kFewSteps) return "";
  const double guessing = GuessingLoss(job.recipe.model, *job.data.train, classes);
  if (guessing < kNothingToLearn) return "";
  // An epoch's mean holds its first steps, too: the test tells how good the network is now. Where a
  // loss is not finite, others say so.
  const double train = summary.train_loss.value_or(NAN);
  const double test = summary.test_loss.value_or(train);
  if (!std::isfinite(train + test) || std::min(train, test) < kAlmost * guessing) return "";
  return fmt::format(
      "the network has learned nothing: the training loss {:.4g} is {} guessing among {} classes "
      "({:.4g}); {}",
      train, train > 1.1 * guessing ? "worse than that of" : "that of", classes, guessing,
      Advice(job, summary.steps));
}

}  // namespace trireme
