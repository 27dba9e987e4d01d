#include "study/sweep.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "record/run_lock.h"
#include "study/child.h"
#include "study/plan_file.h"
#include "study/run_queue.h"
#include "study/slot_share.h"

namespace trireme {
namespace {

struct PlannedRun {
  Combination combination;
  int repetition = 0;
};

std::string RunFolder(const std::string& out, const PlannedRun& run) {
  return fmt::format("{}/runs/c{:03}-r{}", out, run.combination.index, run.repetition + 1);
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
    const auto read = [&](const char* name, std::optional<double>& number) {
      const Json* found = summary.Find(name);
      if (found && !found->IsNull()) number = found->AsDouble();
    };
    summary.At("test_accuracy");  // null where numbers are predicted, but there
    read("test_accuracy", run.test_accuracy);
    read("test_rmse", run.test_rmse);
    read("test_loss", run.test_loss);
    read("validation_accuracy", run.validation_accuracy);
    read("validation_rmse", run.validation_rmse);
    read("validation_loss", run.validation_loss);
    read("peak_memory_bytes", run.peak_bytes);
    return run;
  } catch (const Error&) {  // damaged: not a run that is done
    return {};
  }
}

// All combinations once, then again: what drifts with time drifts for all alike.
std::vector<PlannedRun> PlannedRuns(const SweepPlan& plan) {
  const std::vector<Combination> combinations = Combinations(plan);
  std::vector<PlannedRun> runs;
  for (int repetition = 0; repetition < plan.repeat; ++repetition) {
    for (const Combination& combination : combinations) runs.push_back({combination, repetition});
  }
  return runs;
}

void RunOnce(const SweepPlan& plan, const SweepContext& context, const PlannedRun& run,
             const std::string& folder, int slot, int slots) {
  ClearRun(folder);
  const Recipe recipe = RecipeOf(plan, run.combination);
  const SlotShare share(recipe, slot, slots);
  std::vector<std::string> words = TrainWords(plan, run.combination);
  words.insert(words.end(), share.words().begin(), share.words().end());
  words.insert(words.end(), {"--out", folder});
  const int code = context.train(words, folder + ".log", recipe.transport.ranks);
  if (context.stopped()) return;
  if (code != 0) {
    ReplaceFile(folder + ".error", ChildError(folder + ".log", code) + "\n");
  } else if (!ReadSweepRun(folder)) {
    ReplaceFile(folder + ".error", "the run succeeded but left no summary.json\n");
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
  AdoptPlan(context.out, PlanJson(plan), "sweep");
  const std::vector<PlannedRun> all = PlannedRuns(plan);
  const auto folder_of = [&](size_t run) { return RunFolder(context.out, all[run]); };
  for (size_t i = 0; context.retry && i < all.size(); ++i) {
    if (Exists(folder_of(i) + ".error")) RemoveTree(folder_of(i) + ".error");
  }
  return RunQueued({.count = all.size(),
                    .done = [&](size_t run) { return ReadSweepRun(folder_of(run)).has_value(); },
                    .run =
                        [&](size_t run, int slot, int slots) {
                          RunOnce(plan, context, all[run], folder_of(run), slot, slots);
                          if (context.stopped()) return std::string();
                          return fmt::format("{}: {}", CombinationText(plan, all[run].combination),
                                             OutcomeText(ReadSweepRun(folder_of(run)).value()));
                        },
                    .kind = [&](size_t run) { return size_t(all[run].combination.index); },
                    .stopped = context.stopped,
                    .say = context.say,
                    .enough = context.enough,
                    .parallel = context.parallel});
}

std::vector<SweepRow> ReadSweep(const SweepPlan& plan, const std::string& out) {
  std::vector<SweepRow> rows;
  for (const Combination& combination : Combinations(plan)) rows.push_back({combination, {}});
  for (const PlannedRun& planned : PlannedRuns(plan)) {
    const auto run = ReadSweepRun(RunFolder(out, planned));
    if (run) rows[size_t(planned.combination.index)].runs.push_back(*run);
  }
  return rows;
}

}  // namespace trireme
