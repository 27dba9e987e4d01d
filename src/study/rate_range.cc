#include "study/rate_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "optimizer/rules.h"
#include "report/run_reader.h"

namespace trireme {
namespace {

constexpr int64_t kSteps = 240;
constexpr double kReach = 1000;   // from the usual rate, either way
constexpr double kFarAbove = 4;   // times the first loss: what follows tells nothing
constexpr size_t kWindow = 12;    // a loss is averaged with this many steps before and after it
constexpr size_t kLeast = 40;     // steps
constexpr double kFallen = 0.98;  // of the first loss: it has fallen

std::vector<double> Smooth(const std::vector<double>& losses) {
  std::vector<double> smooth;
  for (size_t i = 0; i < losses.size(); ++i) {
    const size_t half = std::min({kWindow, i, losses.size() - 1 - i});  // even on both sides
    double sum = 0;
    for (size_t j = i - half; j <= i + half; ++j) sum += losses[j];
    smooth.push_back(sum / double(2 * half + 1));
  }
  return smooth;
}

}  // namespace

Recipe RangeRecipe(const Recipe& recipe) {
  Recipe range = recipe;
  OptimizerOptions& optimizer = range.optimizer;
  if (FindRule(optimizer.name).whole) {
    throw UsageError("optimizer {} has no learning rate to look for; tune another optimizer",
                     optimizer.name);
  }
  if (optimizer.scale_lr) {
    throw UsageError(
        "optimizer.scale_lr: tune looks for the rate of this batch; set optimizer.scale_lr=false");
  }
  const double usual = UsualRate(optimizer);
  optimizer.schedule = "rising";
  optimizer.lr = usual * kReach;
  optimizer.lr_min = usual / kReach;
  optimizer.warmup_epochs = 0;
  optimizer.decay_epochs.clear();
  optimizer.decay_every = 0;
  optimizer.decay_patience = 0;
  TrainerOptions& trainer = range.trainer;
  trainer.steps = kSteps;
  trainer.metrics_steps = 1;
  trainer.evaluate_every = 0;
  trainer.checkpoint_epochs = 0;
  trainer.checkpoint_steps = 0;
  trainer.patience = 0;
  trainer.target_accuracy = 0;
  return range;
}

std::optional<double> RangeResult::suggestion() const {
  if (!lowest) return {};
  return std::stod(fmt::format("{:.2g}", rates[*lowest] / 10));
}

RangeResult JudgeRange(std::vector<double> rates, std::vector<double> losses) {
  // The first steps have rates that change nothing.
  double first = 0;
  for (size_t i = 0; i < kWindow && i < losses.size(); ++i) first += losses[i] / double(kWindow);
  const auto end = std::ranges::find_if(
      losses, [&](double loss) { return !std::isfinite(loss) || loss > kFarAbove * first; });
  const size_t count = std::min(rates.size(), size_t(end - losses.begin()));
  if (count < kLeast) {
    throw Error(
        "the range test has only {} steps before its loss is far above the first one; look at "
        "data.normalize",
        count);
  }
  RangeResult result{.rates = std::move(rates), .losses = std::move(losses)};
  result.rates.resize(count);
  result.losses.resize(count);
  result.smooth = Smooth(result.losses);
  const auto at = std::ranges::min_element(result.smooth);
  if (*at < kFallen * first) result.lowest = size_t(at - result.smooth.begin());
  return result;
}

RangeResult ReadRange(const std::string& run) {
  RunReader reader(run);
  reader.Poll();
  std::vector<double> rates, losses;
  for (const MetricsLine& line : reader.data().steps) {
    rates.push_back(line.lr);
    losses.push_back(line.train_loss);
  }
  return JudgeRange(std::move(rates), std::move(losses));
}

LineChart RangeChart(const RangeResult& result) {
  LineChart chart{.title = "Training loss over the learning rate",
                  .x = {.title = "learning rate", .logarithmic = true, .from_zero = false},
                  .y = {.title = "loss", .from_zero = false}};
  chart.curves.push_back(
      {.name = "averaged over some steps", .x = result.rates, .y = result.smooth});
  const auto suggestion = result.suggestion();
  if (!suggestion) return chart;
  const auto at = std::ranges::lower_bound(result.rates, *suggestion);
  const size_t index = std::min(size_t(at - result.rates.begin()), result.rates.size() - 1);
  chart.curves.push_back({.name = "suggestion", .x = {*suggestion}, .y = {result.smooth[index]}});
  return chart;
}

std::string RangeText(const RangeResult& result, const Recipe& recipe) {
  const auto suggestion = result.suggestion();
  if (!suggestion) {
    return fmt::format(
        "the loss falls at no rate from {:.2g} to {:.2g}; look at the data (trireme data info) and "
        "at the network",
        result.rates.front(), result.rates.back());
  }
  return fmt::format(
      "the loss is lowest at a rate of {:.2g}; a tenth of that is a good one: optimizer.lr = {:g} "
      "(the recipe has {:g})",
      result.rates[*result.lowest], *suggestion, recipe.optimizer.lr);
}

Json RangeJson(const RangeResult& result) {
  const auto suggestion = result.suggestion();
  Json json = Json::Object();
  json.Add("suggestion", suggestion ? Json(*suggestion) : Json());
  json.Add("lowest", result.lowest ? Json(result.rates[*result.lowest]) : Json());
  json.Add("rates", result.rates).Add("losses", result.losses);
  return json;
}

}  // namespace trireme
