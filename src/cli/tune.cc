// A recipe's settings: a range test of the rate, then trials.
#include "study/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/files.h"
#include "base/signals.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/recipe_flags.h"
#include "cli/utf8_locale.h"
#include "record/run_lock.h"
#include "report/terminal/text_plot.h"
#include "study/child.h"
#include "study/results.h"
#include "trainer/job.h"

namespace trireme {
namespace {

constexpr Flag kOwnFlags[] = {
    {"--trials", "N", "train N trials with values drawn at random (default: only the range test)"},
    {"--vary", "KEY=RANGE",
     "a key and what to draw for it: LOW..HIGH, LOW..HIGH:log or V1,V2,...; may be repeated "
     "(default: optimizer.lr around the range test's suggestion)"},
    {"--halving", "",
     "successive halving: all trials train for a ninth of the epochs, the best third for a third, "
     "the best third of these for all"},
    {"--hours", "H", "begin no trial after so many hours; the same command goes on later"},
    {"--parallel", "N", "train N trials at a time, each with its share of the processors"},
    {"--out", "DIR", "where runs and results are written; an unfinished search there is continued"},
    {"--quiet", "", "print nothing but warnings and errors"},
    {"--json", "", "print JSON"},
};
constexpr auto kFlags = JoinFlags(kRecipeFlags, kOwnFlags);

constexpr Place kPlaces[] = {
    {"RECIPE", Place::kOptional,
     "a TOML file or the name of a built-in recipe (default: iris; none with --data or --model)"}};

std::string CommandOf(const Args& args, const std::string& out) {
  std::vector<std::string> words{"trireme", "tune"};
  if (const auto recipe = args.Optional("RECIPE")) words.push_back(*recipe);
  const std::vector<std::string> flags = args.FlagsWithout({"--out", "--quiet", "--json"});
  words.insert(words.end(), flags.begin(), flags.end());
  words.insert(words.end(), {"--out", out});
  return ShellLine(words);
}

void CheckFlags(const Args& args) {
  for (const char* flag : {"--vary", "--halving", "--hours", "--parallel"}) {
    if (args.Has(flag) && !args.Has("--trials")) {
      throw UsageError("{} needs --trials N, the number of trials", flag);
    }
  }
  if (args.Has("--trials") && args.Number("--trials", 0) < 1) {
    throw UsageError("--trials must be at least 1, got {}", *args.Value("--trials"));
  }
  if (args.Number("--parallel", 1) < 1) {
    throw UsageError("--parallel must be at least 1, got {}", *args.Value("--parallel"));
  }
  if (args.Has("--hours") && !(args.Number("--hours", 0.0) > 0)) {
    throw UsageError("--hours must be above 0, got {}", *args.Value("--hours"));
  }
}

// What is searched, with all that the recipe leaves open; `chosen` says of that, in words.
TunePlan PlanOf(const Args& args, std::string& chosen) {
  TunePlan plan{.trials = args.Number("--trials", 0), .halving = args.Has("--halving")};
  for (const std::string& text : args.Values("--vary")) {
    plan.keys.push_back(ParseSearchKey(text));
    if (args.Sets(plan.keys.back().key)) {
      throw UsageError("--vary {}: the key is also set; remove one", plan.keys.back().key);
    }
  }
  Sections sections;
  Bind(sections, plan.recipe);
  const auto followed = FollowedRecipe(args);
  if (followed) LoadRecipe(sections, *followed);
  args.ApplyTo(sections);
  SettlePairs(sections, plan.recipe);
  SettleDevice(plan.recipe, sections.IsGiven("trainer.device"));
  if (!followed) chosen = CompleteRecipe(FindOpenKeys(sections), plan.recipe);
  plan.name = followed.value_or(plan.recipe.data.source);
  plan.out = args.Value("--out").value_or(
      DatedFolder(followed ? "tune-" + std::filesystem::path(*followed).stem().string() : "tune"));
  return plan;
}

void ShowRange(const TunePlan& plan, const RangeResult& range, Output& out) {
  const TextStyle style{.width = 76, .height = 14, .unicode = Utf8Locale()};
  for (const std::string& line : TextLines(RangeChart(range), style)) out.Print("{}\n", line);
  out.Print("{}\n", RangeText(range, plan.recipe));
}

void ShowTrials(const TunePlan& plan, const TuneResult& result, Output& out) {
  out.Print("\n{}", TuneText(plan, result));
  const int64_t left = plan.trials - int64_t(result.trials.size());
  if (left > 0) out.Print("{} not run; the same command goes on\n", Counted(left, "trial"));
}

int Run(const Args& args, Process& process) {
  CheckFlags(args);
  const Log log(process.log, Log::kNoRank);
  std::string chosen;
  TunePlan plan = PlanOf(args, chosen);
  CheckTune(plan);
  const bool quiet = args.Has("--quiet"), shows = !quiet && !args.Has("--json");
  MakeDirectories(plan.out);
  const RunLock lock(plan.out);
  AdoptTune(plan);
  if (!chosen.empty() && !quiet) log.Info("tune", "no recipe: {}", chosen);
  const Stopwatch watch;
  const double seconds = 3600 * args.Number("--hours", 0.0);
  int code = 0;
  {
    const Signals signals;
    StopNotice notice(signals, log, "tune", "stopping the current trials");
    const TuneContext context{
        .train = [&](const auto& words,
                     const std::string& path) { return RunChild(words, path, notice); },
        .stopped = [&] { return signals.ExitCode(); },
        .say =
            [&](const std::string& line) {
              if (!quiet) log.Info("tune", "{}", line);
            },
        .enough = [&] { return seconds > 0 && watch.seconds() > seconds; },
        .parallel = args.Number("--parallel", 1)};
    code = TestRange(plan, context);
    if (code == 0 && plan.trials > 0) {
      if (plan.keys.empty()) {
        const auto suggestion = LoadRange(plan).suggestion();
        if (!suggestion) throw Error("{}", RangeText(LoadRange(plan), plan.recipe));
        plan.keys = KeysAround(*suggestion);
      }
      code = RunTrials(plan, context);
    }
  }
  if (code) {
    log.Info("tune", "stopped by a signal; continue with: {}", CommandOf(args, plan.out));
    return code;
  }
  const TuneResult result = ReadTune(plan);
  const Json json = TuneJson(plan, result);
  ReplaceFile(plan.out + "/tune.json", json.Text(1) + "\n");
  ReplaceFile(plan.out + "/tune.csv", TuneCsv(plan, result));
  ReplaceFile(plan.out + "/best.toml", ConfigText(BestRecipe(plan, result)));
  WritePage(TunePage(plan, result, CommandOf(args, plan.out)), plan.out);
  if (args.Has("--json")) process.out.Write(json.Text() + "\n");
  if (shows) {
    ShowRange(plan, result.range, process.out);
    if (plan.trials > 0) ShowTrials(plan, result, process.out);
    process.out.Print("best.toml, tune.json, tune.csv and page.html are in {}\n", plan.out);
  }
  if (result.best && !result.validated && !quiet) {
    log.Info("tune",
             "the test samples chose the best trial, so its numbers are too good; hold some "
             "training samples out for that: --set data.validation_fraction=0.1");
  }
  if (plan.trials > 0 && !result.best) {
    throw Error("no trial has a result; see {}/rung-1/runs", plan.out);
  }
  return 0;
}

}  // namespace

extern const Command kTune;
const Command kTune = {
    .name = "tune",
    .summary = "look for a learning rate and other settings of a recipe",
    .usage = "trireme tune [RECIPE] [--trials N] [--vary KEY=RANGE ...] [flags]",
    .examples =
        "trireme tune fashion-mlp                             # a range test of the rate\n"
        "trireme tune fashion-mlp --trials 20 --out runs/t    # and 20 rates around its "
        "suggestion\n"
        "trireme tune --data csv:FILE --trials 30 --vary optimizer.lr=1e-4..1e-2:log --vary "
        "optimizer.weight_decay=0.01,0.1,1 --set data.validation_fraction=0.2\n"
        "trireme tune fashion-cnn --trials 27 --halving --hours 2 --parallel 2\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
