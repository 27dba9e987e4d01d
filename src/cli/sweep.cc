// One recipe in every combination of some keys.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/signals.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/recipe_flags.h"
#include "study/child.h"
#include "study/results.h"
#include "study/sweep_table.h"

namespace trireme {
namespace {

constexpr Flag kOwnFlags[] = {
    {"--vary", "KEY=V1,V2",
     "a key (or workers: ranks that train) and its values; if repeated, every combination is "
     "trained"},
    {"--repeat", "N", "runs of each combination (3)"},
    {"--out", "DIR", "where runs and results are written; an unfinished sweep there is continued"},
    {"--keep-checkpoints", "",
     "keep the checkpoints of every run (default: they are deleted when it is done)"},
    {"--retry", "", "run failed combinations again"},
    {"--quiet", "", "print nothing but warnings and errors"},
    {"--json", "", "print JSON"},
};
constexpr auto kFlags = JoinFlags(kRecipeFlags, kOwnFlags);

constexpr Place kPlaces[] = {
    {"RECIPE", Place::kOptional, "a TOML file or the name of a built-in recipe (default: iris)"}};

std::string CommandOf(const Args& args, const std::string& out) {
  std::vector<std::string> words{"trireme", "sweep"};
  if (const auto recipe = args.Optional("RECIPE")) words.push_back(*recipe);
  const std::vector<std::string> flags =
      args.FlagsWithout({"--out", "--retry", "--quiet", "--json"});
  words.insert(words.end(), flags.begin(), flags.end());
  words.insert(words.end(), {"--out", out});
  return ShellLine(words);
}

int Run(const Args& args, Process& process) {
  SweepPlan plan{.settings = args.Settings(), .repeat = args.Number("--repeat", 3)};
  std::vector<std::string> varied;
  for (const std::string& text : args.Values("--vary")) {
    plan.vary.push_back(ParseVariation(text));
    varied.push_back(plan.vary.back().key);
  }
  plan.recipe = FollowedRecipe(args, varied).value_or("");
  if (plan.vary.empty()) {
    throw UsageError("--vary is missing; name a key and its values, as in transport.ranks=1,2,4");
  }
  CheckPlan(plan);
  const std::string out = args.Value("--out").value_or(DatedFolder(
      plan.recipe.empty() ? "sweep"
                          : "sweep-" + std::filesystem::path(plan.recipe).stem().string()));
  const Log log(process.log, Log::kNoRank);
  const Signals signals;
  StopNotice notice(signals, log, "sweep", "stopping the current run");
  const bool quiet = args.Has("--quiet");
  const int code = RunSweep(plan, {.out = out,
                                   .retry = args.Has("--retry"),
                                   .keep_checkpoints = args.Has("--keep-checkpoints"),
                                   .train = [&](const auto& words, const std::string& path,
                                                int) { return RunChild(words, path, notice); },
                                   .stopped = [&] { return signals.ExitCode(); },
                                   .say =
                                       [&](const std::string& line) {
                                         if (!quiet) log.Info("sweep", "{}", line);
                                       }});
  if (code) {
    log.Info("sweep", "stopped by a signal; continue with: {}", CommandOf(args, out));
    return code;
  }
  const std::vector<SweepNumbers> rows = NumbersOf(plan, ReadSweep(plan, out));
  const Json json = SweepJson(plan, rows);
  ReplaceFile(out + "/sweep.json", json.Text(1) + "\n");
  ReplaceFile(out + "/sweep.csv", SweepCsv(plan, rows));
  WritePage(SweepPage(plan, rows, CommandOf(args, out)), out);
  if (args.Has("--json")) {
    process.out.Write(json.Text() + "\n");
  } else {
    process.out.Write(SweepText(plan, rows));
    process.out.Print("training s: time of the epochs (train_seconds in summary.json)\n");
    process.out.Print("runs, sweep.json, sweep.csv and page.html are in {}\n", out);
  }
  const bool failed = std::any_of(rows.begin(), rows.end(),
                                  [](const SweepNumbers& row) { return !row.error.empty(); });
  return failed ? 1 : 0;
}

}  // namespace

extern const Command kSweep;
const Command kSweep = {
    .name = "sweep",
    .summary = "train a recipe with every combination of some keys' values, and compare them",
    .usage = "trireme sweep [RECIPE] --vary KEY=V1,V2 ... [flags]",
    .examples =
        "trireme sweep fashion-mlp --vary transport.ranks=1,2,4 --epochs 2   # strong scaling\n"
        "trireme sweep fashion-mlp --vary transport.ranks=1,2,4 --set trainer.batch_per_worker=32 "
        "--steps 500   # weak scaling\n"
        "trireme sweep iris --vary transport.ranks=1,2 --vary transport.name=threads,shm "
        "--repeat 5 --out runs/s\n"
        "trireme sweep --data csv:FILE --vary optimizer.name=sgd,adamw\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
