#include "study/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "record/run_lock.h"
#include "study/child.h"
#include "study/plan_file.h"
#include "study/run_queue.h"

namespace trireme {
namespace {

constexpr int kMostTrials = 10'000;
constexpr int kFactor = 3;     // of halving: epochs of a rung over those of the one before
constexpr int kMostRungs = 3;  // a ninth of the epochs still tells something

std::string RecipeFile(const TunePlan& plan) { return plan.out + "/recipe.toml"; }
std::string RangeFile(const TunePlan& plan) { return plan.out + "/range.json"; }

// As many as leave one trial for the last.
int RungsOf(const TunePlan& plan) {
  int rungs = 1;
  for (int left = plan.trials; plan.halving && left > 1 && rungs < kMostRungs; ++rungs) {
    left = (left + kFactor - 1) / kFactor;
  }
  return rungs;
}

// What a rung sets for all its trials.
std::vector<std::string> SettingsOf(const TunePlan& plan, int rung) {
  const int divisor = int(std::pow(kFactor, RungsOf(plan) - rung));
  if (divisor == 1) return {};
  const TrainerOptions& trainer = plan.recipe.trainer;
  if (trainer.steps > 0) {
    return {fmt::format("trainer.steps={}", std::max<int64_t>(1, trainer.steps / divisor))};
  }
  return {fmt::format("trainer.epochs={:.4g}", trainer.epochs / divisor)};
}

std::vector<std::string> ValuesOf(const TunePlan& plan, int trial) {
  return DrawValues(plan.keys, plan.recipe.trainer.seed, trial);
}

SweepPlan RungPlan(const TunePlan& plan, int rung, const std::vector<int>& trials) {
  Variation variation{.key = "trial", .values = {}};
  for (const int trial : trials) {
    const std::vector<std::string> values = ValuesOf(plan, trial);
    std::vector<std::string> sets;
    for (size_t k = 0; k < plan.keys.size(); ++k) {
      sets.push_back(plan.keys[k].key + "=" + values[k]);
    }
    variation.values.push_back(fmt::format("{} ({})", trial, fmt::join(sets, ", ")));
    variation.settings.push_back(std::move(sets));
  }
  return {.recipe = RecipeFile(plan),
          .settings = SettingsOf(plan, rung),
          .vary = {std::move(variation)},
          .repeat = 1};
}

std::string RungFolder(const TunePlan& plan, int rung) {
  return fmt::format("{}/rung-{}", plan.out, rung);
}

std::vector<int> AllTrials(const TunePlan& plan) {
  std::vector<int> all;
  for (int trial = 1; trial <= plan.trials; ++trial) all.push_back(trial);
  return all;
}

// Those of them that are done.
std::vector<Trial> ReadRung(const TunePlan& plan, int rung, const std::vector<int>& trials) {
  const SweepPlan sweep = RungPlan(plan, rung, trials);
  std::vector<Trial> done;
  for (const SweepRow& row : ReadSweep(sweep, RungFolder(plan, rung))) {
    if (row.runs.empty()) continue;
    const int trial = trials[size_t(row.combination.index)];
    done.push_back({.number = trial,
                    .values = ValuesOf(plan, trial),
                    .rung = rung,
                    .recipe = RecipeOf(sweep, row.combination),
                    .run = row.runs[0]});
  }
  return done;
}

double LossOf(const SweepRun& run) {
  return run.validation_loss.value_or(run.test_loss.value_or(INFINITY));
}

// The better one first; of equals the earlier.
bool IsBetter(const Trial& a, const Trial& b) {
  const auto merit_a = MeritOf(a.run), merit_b = MeritOf(b.run);
  if (merit_a.has_value() != merit_b.has_value()) return merit_a.has_value();
  if (merit_a && *merit_a != *merit_b) return *merit_a > *merit_b;
  if (LossOf(a.run) != LossOf(b.run)) return LossOf(a.run) < LossOf(b.run);
  return a.number < b.number;
}

Json PlanOf(const TunePlan& plan) {
  Json keys = Json::Array();
  for (const SearchKey& key : plan.keys) keys.Append(key.key + "=" + key.text);
  Json json = Json::Object();
  json.Add("recipe", plan.name).Add("vary", std::move(keys)).Add("trials", plan.trials);
  json.Add("halving", plan.halving).Add("config", ConfigText(plan.recipe));
  return json;
}

}  // namespace

std::optional<double> MeritOf(const SweepRun& run) {
  if (!run.error.empty()) return {};
  for (const auto& [rmse, accuracy] : {std::pair(run.validation_rmse, run.validation_accuracy),
                                       std::pair(run.test_rmse, run.test_accuracy)}) {
    if (rmse && std::isfinite(*rmse)) return -*rmse;
    if (accuracy) return accuracy;
  }
  return {};
}

std::vector<int> Survivors(std::span<const Trial> rung) {
  std::vector<Trial> sorted(rung.begin(), rung.end());
  std::ranges::sort(sorted, IsBetter);
  std::vector<int> numbers;
  for (size_t i = 0; i < (sorted.size() + kFactor - 1) / kFactor; ++i) {
    if (MeritOf(sorted[i].run)) numbers.push_back(sorted[i].number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

void CheckTune(const TunePlan& plan) {
  if (plan.trials < 0 || plan.trials > kMostTrials) {
    throw UsageError("--trials must be between 1 and {}, got {}", kMostTrials, plan.trials);
  }
  for (size_t i = 0; i < plan.keys.size(); ++i) {
    const std::string& key = plan.keys[i].key;
    if (plan.halving && (key == "trainer.epochs" || key == "trainer.steps")) {
      throw UsageError("--vary {}: --halving changes it from rung to rung; use one of the two",
                       key);
    }
    for (size_t j = 0; j < i; ++j) {
      if (plan.keys[j].key == key) throw UsageError("--vary {} appears twice", key);
    }
  }
  RangeRecipe(plan.recipe);
}

void AdoptTune(const TunePlan& plan) {
  MakeDirectories(plan.out);
  AdoptPlan(plan.out, PlanOf(plan), "search");
  if (!Exists(RecipeFile(plan))) ReplaceFile(RecipeFile(plan), ConfigText(plan.recipe));
}

int TestRange(const TunePlan& plan, const TuneContext& context) {
  if (Exists(RangeFile(plan))) return 0;
  const std::string run = plan.out + "/range", file = run + ".toml", log = run + ".log";
  ReplaceFile(file, ConfigText(RangeRecipe(plan.recipe)));
  ClearRun(run);
  const int code = context.train({"train", file, "--quiet", "--out", run}, log);
  if (const int stopped = context.stopped()) return stopped;
  // A run whose loss is no longer finite ends with an error, and that is what it is for.
  if (!Exists(run + "/metrics.jsonl")) throw Error("range test: {}", ChildError(log, code));
  ReplaceFile(RangeFile(plan), RangeJson(ReadRange(run)).Text(1) + "\n");
  RemoveTree(run + "/checkpoints");
  return 0;
}

RangeResult LoadRange(const TunePlan& plan) {
  const Json json = ParseJson(ReadFile(RangeFile(plan)), RangeFile(plan));
  std::vector<double> rates, losses;
  for (const Json& rate : json.At("rates").Items()) rates.push_back(rate.AsDouble());
  for (const Json& loss : json.At("losses").Items()) losses.push_back(loss.AsDouble());
  return JudgeRange(std::move(rates), std::move(losses));
}

std::vector<SearchKey> KeysAround(double suggestion) {
  return {ParseSearchKey(
      fmt::format("optimizer.lr={:.3g}..{:.3g}:log", suggestion / 10, suggestion * 10))};
}

int RunTrials(const TunePlan& plan, const TuneContext& context) {
  std::vector<int> trials = AllTrials(plan);
  for (int rung = 1; rung <= RungsOf(plan) && !trials.empty(); ++rung) {
    if (RungsOf(plan) > 1) {
      context.say(fmt::format("rung {} of {}: {}", rung, RungsOf(plan),
                              Counted(int64_t(trials.size()), "trial")));
    }
    const int code = RunSweep(RungPlan(plan, rung, trials),
                              {.out = RungFolder(plan, rung),
                               .train = [&](const auto& words, const std::string& log,
                                            int) { return context.train(words, log); },
                               .stopped = context.stopped,
                               .say = context.say,
                               .enough = context.enough,
                               .parallel = context.parallel});
    if (code) return code;
    const std::vector<Trial> done = ReadRung(plan, rung, trials);
    if (done.size() < trials.size()) return 0;  // there was no time for more
    trials = Survivors(done);
  }
  return 0;
}

TuneResult ReadTune(const TunePlan& plan) {
  TuneResult result{.range = LoadRange(plan)};
  std::vector<int> trials = AllTrials(plan);
  std::vector<Trial> last;  // of the last rung in which all are done, or that is under way
  for (int rung = 1; rung <= RungsOf(plan) && !trials.empty(); ++rung) {
    const std::vector<Trial> done = ReadRung(plan, rung, trials);
    if (done.empty()) break;
    last = done;
    for (const Trial& trial : done) {
      const auto same = [&](const Trial& other) { return other.number == trial.number; };
      const auto at = std::ranges::find_if(result.trials, same);
      if (at == result.trials.end()) {
        result.trials.push_back(trial);
      } else {
        *at = trial;
      }
    }
    if (done.size() < trials.size()) break;
    trials = Survivors(done);
  }
  const auto best = std::ranges::min_element(last, IsBetter);
  for (size_t i = 0; i < result.trials.size(); ++i) {
    const SweepRun& run = result.trials[i].run;
    result.validated = result.validated || run.validation_accuracy || run.validation_rmse;
    if (best != last.end() && MeritOf(run) && result.trials[i].number == best->number) {
      result.best = i;
    }
  }
  return result;
}

Recipe BestRecipe(const TunePlan& plan, const TuneResult& result) {
  if (result.best) {
    Recipe recipe = result.trials[*result.best].recipe;
    if (plan.halving) {  // of a rung that is not the last, where there was no time for more
      recipe.trainer.epochs = plan.recipe.trainer.epochs;
      recipe.trainer.steps = plan.recipe.trainer.steps;
    }
    return recipe;
  }
  Recipe recipe = plan.recipe;
  if (const auto suggestion = result.range.suggestion()) recipe.optimizer.lr = *suggestion;
  return recipe;
}

}  // namespace trireme
