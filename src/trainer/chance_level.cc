#include "trainer/chance_level.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/label.h"
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

bool IsFarFromUsual(double rate, double usual) {
  return rate > kNear * usual || rate < usual / kNear;
}

std::string Advice(const Job& job, int64_t steps) {
  const OptimizerOptions& optimizer = job.recipe.optimizer;
  if (FindRule(optimizer.name).whole) return "try more --epochs or another --seed";
  const bool near = !IsFarFromUsual(optimizer.lr, UsualRate(optimizer));
  return near && steps < kShortRun ? "try more --epochs" : OtherRate(job);
}

}  // namespace

double GuessingLoss(const ModelOptions& model, const Source& train, int classes,
                    std::span<const float> class_weights) {
  std::vector<double> shares = Shares(train, classes);
  for (size_t c = 0; c < class_weights.size(); ++c) shares[c] *= double(class_weights[c]);
  return LossFor(model.loss, classes).guessing(shares, model.smoothing);
}

double GuessingLoss(const ModelOptions& model, const Source& train, const TargetScale& target) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < train.size(); ++i) {
    numbers.push_back(target.Standard(NumberOfLabel(train.label(i))));
  }
  std::sort(numbers.begin(), numbers.end());
  return LossFor(model.loss, 1).guessing_number(numbers);
}

namespace {

double GuessingLossOf(const Job& job) {
  const Source& train = *job.data.train;
  const auto& target = job.normalizer.target();
  if (target) return GuessingLoss(job.recipe.model, train, *target);
  return GuessingLoss(job.recipe.model, train, job.data.outputs(), job.class_weights);
}

std::string GuessingText(const Job& job) {
  if (!job.classifies()) return "guessing the same number every time";
  return fmt::format("guessing among {} classes", job.data.classes.size());
}

}  // namespace

std::string OtherRate(const Job& job) {
  const OptimizerOptions& optimizer = job.recipe.optimizer;
  if (FindRule(optimizer.name).whole) return "";
  const double usual = UsualRate(optimizer);
  return fmt::format("try --lr {:g}",
                     IsFarFromUsual(optimizer.lr, usual) ? usual : optimizer.lr / 10);
}

std::string NoBetterThanGuessing(const Job& job, double train, double test) {
  const double guessing = GuessingLossOf(job);
  if (guessing < kNothingToLearn) return "";
  // Where classes are weighed in training, the test's loss is another one.
  if (!job.class_weights.empty()) test = train;
  if (!std::isfinite(train + test) || std::min(train, test) < kAlmost * guessing) return "";
  return fmt::format("the training loss {:.4g} is {} {} ({:.4g})", train,
                     train > 1.1 * guessing ? "worse than that of" : "that of", GuessingText(job),
                     guessing);
}

std::string LearnedNothing(const Job& job, const Summary& summary) {
  if (summary.steps < kFewSteps) return "";
  // An epoch's mean holds its first steps, too: the test tells how good the network is now. Where a
  // loss is not finite, others say so.
  const double train = summary.train_loss.value_or(NAN);
  const std::string guessing = NoBetterThanGuessing(job, train, summary.test_loss.value_or(train));
  if (guessing.empty()) return "";
  return fmt::format("the network has learned nothing: {}; {}", guessing,
                     Advice(job, summary.steps));
}

}  // namespace trireme
