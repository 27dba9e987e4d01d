#include "study/sweep.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "record/run_lock.h"
#include "study/child.h"
#include "study/statistics.h"

namespace trireme {
namespace {

constexpr double kLockPatience = 30;  // seconds: the ranks of a killed run take a moment to go

struct SweepTurn {
  Combination combination;
  int repetition = 0;
};

std::string RunFolder(const std::string& out, const SweepTurn& turn) {
  return fmt::format("{}/runs/c{:03}-r{}", out, turn.combination.index, turn.repetition + 1);
}

void AdoptSweepPlan(const SweepPlan& plan, const std::string& out) {
  const std::string path = out + "/plan.json", text = PlanJson(plan).Text(1) + "\n";
  if (!Exists(path)) return ReplaceFile(path, text);
  const Json before = ParseJson(ReadFile(path), path), now = PlanJson(plan);
  for (const auto& [key, value] : now.Members()) {
    const Json* other = before.Find(key);
    if (other && other->Text() == value.Text()) continue;
    const bool brief = key != "config";
    throw UsageError(
        "{} holds another sweep: its {} {}; use another --out", out,
        brief ? key : "recipe has changed",
        brief ? fmt::format("is {}, not {}", other ? other->Text() : "missing", value.Text())
              : "since");
  }
}

std::optional<SweepRun> ReadSweepRun(const std::string& folder) {
  SweepRun run{.folder = folder};
  if (Exists(folder + ".error")) {
    run.error = Trim(ReadFile(folder + ".error"));
    return run;
  }
  const std::string path = folder + "/summary.json";
  if (!Exists(path)) return {};
  try {
    const Json summary = ParseJson(ReadFile(path), path);
    run.seconds = summary.At("train_seconds").AsDouble();
    run.samples_per_second = summary.At("samples_per_second").AsDouble();
    const Json& accuracy = summary.At("test_accuracy");
    if (!accuracy.IsNull()) run.test_accuracy = accuracy.AsDouble();
    return run;
  } catch (const Error&) {  // damaged: not a run that is done
    return {};
  }
}

// What an interrupted run left; its ranks may still be about to die.
void Clear(const std::string& folder) {
  if (!Exists(folder)) return;
  const Stopwatch watch;
  for (;;) {
    try {
      const RunLock lock(folder);
      return RemoveTree(folder);
    } catch (const Error&) {
      if (watch.seconds() > kLockPatience) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// How long the rest takes: each as its combination took, or as all did.
class TimeLeft {
 public:
  explicit TimeLeft(size_t combinations) : seconds_(combinations) {}
  void Took(int combination, double seconds) {
    seconds_[size_t(combination)].push_back(seconds);
    all_.push_back(seconds);
  }
  double Of(std::span<const SweepTurn> turns) const {
    double left = 0;
    for (const SweepTurn& turn : turns) {
      const auto& own = seconds_[size_t(turn.combination.index)];
      if (!all_.empty()) left += SpreadOf(own.empty() ? all_ : own).median;
    }
    return left;
  }

 private:
  std::vector<std::vector<double>> seconds_;
  std::vector<double> all_;
};

// All combinations once, then again: what drifts with time drifts for all alike.
std::vector<SweepTurn> Turns(const SweepPlan& plan) {
  const std::vector<Combination> combinations = Combinations(plan);
  std::vector<SweepTurn> turns;
  for (int repetition = 0; repetition < plan.repeat; ++repetition) {
    for (const Combination& combination : combinations) turns.push_back({combination, repetition});
  }
  return turns;
}

void RunOnce(const SweepPlan& plan, const SweepContext& context, const SweepTurn& turn,
             const std::string& folder) {
  Clear(folder);
  std::vector<std::string> words = TrainWords(plan, turn.combination);
  words.insert(words.end(), {"--out", folder});
  const int code = context.train(words, folder + ".log");
  if (context.stopped()) return;
  if (code != 0) {
    ReplaceFile(folder + ".error", ChildError(folder + ".log", code) + "\n");
  } else if (!ReadSweepRun(folder)) {
    ReplaceFile(folder + ".error", "the run ended well but left no summary.json\n");
  } else if (!context.keep_checkpoints) {
    RemoveTree(folder + "/checkpoints");
  }
}

std::string OutcomeText(const SweepRun& run) {
  if (!run.error.empty()) return "failed: " + run.error;
  return fmt::format("{} of training, {} samples/s", FormatSeconds(run.seconds),
                     FormatCount(int64_t(run.samples_per_second)));
}

}  // namespace

int RunSweep(const SweepPlan& plan, const SweepContext& context) {
  CheckPlan(plan);
  MakeDirectories(context.out + "/runs");
  const RunLock lock(context.out);
  AdoptSweepPlan(plan, context.out);
  std::vector<SweepTurn> left;
  const std::vector<SweepTurn> all = Turns(plan);
  for (const SweepTurn& turn : all) {
    const std::string folder = RunFolder(context.out, turn);
    if (context.retry && Exists(folder + ".error")) RemoveTree(folder + ".error");
    if (!ReadSweepRun(folder)) left.push_back(turn);
  }
  if (left.size() < all.size()) {
    context.say(
        fmt::format("{} of {} runs are done already", all.size() - left.size(), all.size()));
  }
  TimeLeft time_left(Combinations(plan).size());
  for (size_t i = 0; i < left.size(); ++i) {
    const std::string folder = RunFolder(context.out, left[i]);
    const Stopwatch watch;
    RunOnce(plan, context, left[i], folder);
    if (const int code = context.stopped()) return code;
    time_left.Took(left[i].combination.index, watch.seconds());
    const double rest = time_left.Of(std::span(left).subspan(i + 1));
    context.say(fmt::format(
        "{}/{} {}: {}{}", all.size() - left.size() + i + 1, all.size(),
        CombinationText(plan, left[i].combination), OutcomeText(ReadSweepRun(folder).value()),
        i + 1 < left.size() ? fmt::format("; about {} left", FormatSeconds(rest)) : ""));
  }
  return 0;
}

std::vector<SweepRow> ReadSweep(const SweepPlan& plan, const std::string& out) {
  std::vector<SweepRow> rows;
  for (const Combination& combination : Combinations(plan)) rows.push_back({combination, {}});
  for (const SweepTurn& turn : Turns(plan)) {
    const auto run = ReadSweepRun(RunFolder(out, turn));
    if (run) rows[size_t(turn.combination.index)].runs.push_back(*run);
  }
  return rows;
}

}  // namespace trireme
