// The command that everything else is for.
#include "cli/train.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "base/signals.h"
#include "base/text.h"
#include "cli/build_facts.h"
#include "cli/done_already.h"
#include "cli/plan_text.h"
#include "cli/recipe_flags.h"
#include "cli/result_text.h"
#include "cli/train_folds.h"
#include "data/sources.h"
#include "record/checkpoint.h"
#include "report/page/run_page.h"
#include "study/known_range.h"
#include "trainer/chance_level.h"
#include "trainer/data_notes.h"
#include "trainer/prepare.h"
#include "trainer/resume_check.h"
#include "trainer/train.h"

namespace trireme {
namespace {

constexpr Flag kOwnFlags[] = {
    {"--trace", "FILE", "write a Chrome trace of all ranks", "record.trace"},
    {"--out", "DIR", "where the run is written (default: runs/NAME-DATE)"},
    {"--resume", "RUN", "continue a run from its newest checkpoint"},
    {"--init", "RUN",
     "start from the weights of a run, a checkpoint, a safetensors file or onnx:FILE",
     "trainer.init"},
    {"--folds", "K",
     "cross-validation: a run for each of K folds of the samples, and their summary"},
    {"--parallel", "N",
     "with --folds: train N folds at a time, each with its share of the processors"},
    {"--self-test", "", "compare the ranks' gradient with that of a single rank; train nothing"},
    {"--dry-run", "", "print the plan; train nothing"},
    {"--help-config", "", "print every key of a recipe with its default and meaning"},
    {"--quiet", "", "print nothing but warnings and errors"},
    {"--json", "", "progress as JSON lines on standard output"},
};
constexpr auto kFlags = JoinFlags(kRecipeFlags, kOwnFlags);

constexpr Place kPlaces[] = {
    {"RECIPE", Place::kOptional,
     "a TOML file or the name of a built-in recipe (default: iris; none with --data or --model)"}};

// What a run needs that no key says.
struct Settings {
  Recipe recipe;
  Sections sections;
  std::string stem = "train";  // of a new run's directory
  OpenKeys open;               // without a recipe
};

void LoadSettings(const Args& args, Settings& settings) {
  Bind(settings.sections, settings.recipe);
  const auto resume = args.Value("--resume");
  if (const auto recipe = args.Optional("RECIPE"); recipe && resume) {
    throw UsageError("--resume {} uses the run's own recipe; remove {}", *resume, *recipe);
  }
  if (resume) {
    LoadRunRecipe(settings.sections, *resume);
  } else if (const auto recipe = FollowedRecipe(args)) {
    LoadRecipe(settings.sections, *recipe);
    settings.stem = std::filesystem::path(*recipe).stem();
  }
  args.ApplyTo(settings.sections);
  SettlePairs(settings.sections, settings.recipe);
  if (!resume && !FollowedRecipe(args)) settings.open = FindOpenKeys(settings.sections);
}

// What the recipe says of [transport] yields to a launcher; what the command line says does not.
Launcher MakeLauncher(Settings& settings) {
  const auto launched = FindLauncher([](const char* name) { return std::getenv(name); });
  TransportOptions& transport = settings.recipe.transport;
  const bool several = launched && !launched->alone();
  const bool name_given = settings.sections.ByHand("transport.name");
  const TransportKind* kind = FindTransport(transport.name);
  const bool needs_launcher = kind && !kind->run;
  if (!name_given && (several || needs_launcher)) transport.name = kAutoTransport;
  const bool ranks_given = settings.sections.ByHand("transport.ranks");
  return Launcher(transport, ranks_given, launched);
}

// The command line as it was given.
std::string CommandText(const Args& args) {
  std::vector<std::string> words{"trireme", "train"};
  if (const auto recipe = args.Optional("RECIPE")) words.push_back(*recipe);
  for (std::string& word : args.FlagsWithout({})) words.push_back(std::move(word));
  return ShellLine(words);
}

// What was chosen because nobody said it, and what of the command line has no use.
void SayChoices(const Log& log, const Settings& settings, const Recipe& recipe,
                const std::string& chosen, bool quiet) {
  if (!chosen.empty() && !quiet) {
    log.Info("train", "no recipe: {} (--model, --lr, --set optimizer.schedule, ... change it)",
             chosen);
  }
  for (const std::string& remark : OptimizerRemarks(settings.sections, recipe.optimizer)) {
    log.Warn("optimizer", "{}", remark);
  }
}

// A recipe names a place for its data that may not be here.
Job Prepare(const Settings& settings, const Launcher& launcher, const Log& log,
            const std::string& resumed, bool begun, bool only_plan) {
  try {
    return PrepareRun({.recipe = settings.recipe,
                       .open = settings.open,
                       .begun = begun,
                       .run = resumed,
                       .only_plan = only_plan},
                      launcher, log);
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    const std::string& source = settings.recipe.data.source;
    const size_t colon = source.find(':');
    const bool here = colon == source.npos || Exists(source.substr(colon + 1));
    if (!resumed.empty() || here || settings.sections.ByHand("data.source")) throw;
    for (const SourceKind& kind : SourceKinds()) {
      if (source.substr(0, colon) == kind.name) {
        throw Error(
            "{}; name your copy with --data {}:{}", error.what(), kind.name,
            std::string_view(kind.syntax).find("FILE") == std::string_view::npos ? "DIR" : "FILE");
      }
    }
    throw;
  }
}

int RunJob(const Args& args, Process& process, Settings& settings, Launcher& launcher) {
  const Log log(process.log, launcher.launched() ? launcher.first() : Log::kNoRank);
  const bool records = launcher.holds(kRecordingRank);
  const auto resume = args.Value("--resume");
  std::optional<RunDirectory> directory;
  Settings before;
  if (resume) {
    if (args.Has("--self-test")) {
      throw UsageError("--self-test cannot be used with --resume; it tests the start of a run");
    }
    if (args.Has("--out") || args.Has("--init")) {
      throw UsageError(
          "--out and --init cannot be used with --resume, which continues in the same run");
    }
    Bind(before.sections, before.recipe);
    LoadRunRecipe(before.sections, *resume);
    CheckResume(before.recipe, settings.recipe);
    if (records) {
      directory.emplace(RunDirectory::Resume(*resume));
      const std::string other = OtherBuildText(directory->last_start());
      if (!other.empty()) log.Info("resume", "{}", other);
    }
  }

  // A resumed run has its weights, at the latest from the rank that records.
  const bool begun = resume && (!records || HasCheckpoint(directory->checkpoints()));
  Job job = Prepare(settings, launcher, log, resume.value_or(""), begun, args.Has("--dry-run"));
  if (records) SayLeftOut(log, job.data.left_out);
  if (records && !resume) SayNotes(log, job.data.notes);
  if (records && !resume && !job.data.summary.empty()) log.Info("data", "{}", job.data.summary);
  if (records) SayChoices(log, settings, job.recipe, job.chosen, args.Has("--quiet"));
  if (args.Has("--dry-run")) {
    process.out.Write(PlanText(job));
    return 0;
  }

  const ProgressStyle style =
      ChooseProgressStyle(args.Has("--quiet") || !records, args.Has("--json") && records);
  const bool shows_text = style == ProgressStyle::kPlain || style == ProgressStyle::kTerminal;
  if (resume && records && launcher.complete()) {
    const std::string done = DoneText(job, before.recipe, *resume);
    if (!done.empty()) {
      if (shows_text) process.out.Print("{}\n", done);
      return 0;
    }
  }

  const std::string& trace = job.recipe.record.trace;
  if (!trace.empty() && launcher.holds(0)) Replacement::Check(trace);  // it is written at the end

  // From here on a signal is a wish to stop; before, there is nothing to save.
  const Signals signals;
  std::optional<TemporaryDirectory> nowhere;  // a self-test leaves nothing
  if (args.Has("--self-test")) {
    job.only_self_test = true;
    if (records) directory.emplace(RunDirectory::Create(nowhere.emplace() / "run", ""));
  }
  if (records && !directory) {
    const auto out = args.Value("--out");
    directory.emplace(
        out ? RunDirectory::Create(*out, ConfigText(job.recipe))
            : RunDirectory::CreateNamed("runs", settings.stem, ConfigText(job.recipe)));
  }
  if (records && !resume && !job.only_self_test) {
    const std::string above = RateAboveRange(
        job.recipe, (std::filesystem::path(directory->path()) / "..").lexically_normal());
    if (!above.empty()) log.Warn("train", "{}", above);
  }
  Json start_line = StartLine(CommandText(args), job);
  start_line.Add("build", BuildFactsJson(ReadBuildFacts()));
  std::optional<OutputError> lost;  // the run goes on: it is worth more than what is said about it
  Progress progress(style, process.log, [&](std::string_view event) {
    if (lost) return;
    try {
      process.out.Print("{}\n", event);
    } catch (const OutputError& error) {
      log.Warn("train", "{}; the run continues without it", error.what());
      lost = error;
    }
  });
  StopNotice notice(signals, log, "train", "stopping after this step");
  if (launcher.launched() && !records) notice.Over();  // one of them says it
  const auto report = [&](const Outcome& outcome) {
    notice.Over();
    progress.Hide();  // where this process is a rank, nobody does it later
    if (lost && outcome.ending != Ending::kSignal) throw *lost;
    if (outcome.ending == Ending::kTested) {
      process.out.Print(
          "self-test passed: the gradient of {} and {} is that of a single rank (relative "
          "difference {:.1e})\n",
          Counted(job.recipe.transport.ranks, "rank"), Counted(job.plan.shards, "shard"),
          outcome.self_test->difference);
    } else if (outcome.ending == Ending::kSignal) {
      log.Info("train", "stopped by a signal; continue with: trireme train --resume {}",
               directory->path());
    } else if (shows_text) {
      process.out.Write(ResultText(job, outcome, directory->path()));
    }
    const std::string nothing = LearnedNothing(job, outcome.summary);
    if (!nothing.empty()) log.Warn("train", "{}", nothing);
  };
  return Train(job, {.directory = directory ? &*directory : nullptr,
                     .progress = progress,
                     .signals = signals,
                     .log = log,
                     .launcher = launcher,
                     .start_line = job.only_self_test ? nullptr : &start_line,
                     .notice = &notice,
                     .device = args.Has("--quiet") ? "" : DeviceText(job),
                     .show_ranks = !args.Has("--quiet"),
                     .report = report});
}

// The first of them; what a recipe holds out yields.
void TakeFolds(const Args& args, Settings& settings) {
  if (settings.sections.ByHand("data.test_fraction")) {
    throw UsageError("--folds and data.test_fraction both say what is held out; set one");
  }
  DataOptions& data = settings.recipe.data;
  data.test_fraction = DataOptions{}.test_fraction;
  data.folds = args.Number("--folds", 0);
  data.fold = 1;
  if (data.folds < 2) throw UsageError("--folds must be at least 2, got {}", data.folds);
}

// Which device auto means, and why it is no card where somebody wants to know. `speaks`: this
// process records the run.
void ChooseDevice(const Args& args, Process& process, Settings& settings, bool speaks) {
  const std::string why =
      SettleDevice(settings.recipe, settings.sections.IsGiven("trainer.device"));
  if (why.empty() || !speaks || args.Has("--quiet")) return;
  Log(process.log)
      .Info("device", "auto: {} computes, because {}", settings.recipe.trainer.device, why);
}

int Run(const Args& args, Process& process) {
  Settings settings;
  if (args.Has("--help-config")) {
    Bind(settings.sections, settings.recipe);
    process.out.Print("{}", settings.sections.HelpText());
    return 0;
  }
  LoadSettings(args, settings);
  if (args.Has("--folds")) {
    TakeFolds(args, settings);
    if (!args.Has("--dry-run")) {
      ChooseDevice(args, process, settings, true);
      const std::string chosen = CompleteRecipe(settings.open, settings.recipe);
      SayChoices(Log(process.log), settings, settings.recipe, chosen, args.Has("--quiet"));
      return CrossValidate(args, process, std::move(settings.recipe), settings.stem);
    }
  } else if (args.Has("--parallel")) {
    throw UsageError("--parallel needs --folds: it says how many folds train at a time");
  }
  Launcher launcher = MakeLauncher(settings);
  const Log log(process.log, launcher.first());
  // Cards are looked for before MPI is there, which does not like a process to fork. Whether this
  // one needs a card is seen later: a server does not.
  ChooseDevice(args, process, settings, launcher.holds(kRecordingRank));
  if (launcher.launched()) FindDevice(settings.recipe.trainer.device).kind->Missing();
  launcher.Join(&log);
  try {
    return RunJob(args, process, settings, launcher);
  } catch (const std::exception& error) {
    launcher.Abort(error.what());
    throw;
  }
}

}  // namespace

Args ReadTrainWords(std::span<const std::string> words) { return Args(kFlags, kPlaces, words); }

void CheckTrainWords(const Args& args) {
  Settings settings;
  LoadSettings(args, settings);
}

extern const Command kTrain;
const Command kTrain = {
    .name = "train",
    .summary = "train a network",
    .usage = "trireme train [RECIPE] [flags]",
    .examples =
        "trireme train                                        # Iris, a few seconds\n"
        "trireme train recipes/fashion-cnn.toml --epochs 10 --out runs/a\n"
        "trireme train --resume runs/a --epochs 20            # continue to epoch 20\n"
        "trireme train --folds 5 --parallel 2                 # 5-fold cross-validation, two at "
        "once\n"
        "trireme train --ranks 4                              # four threads, all-reduce\n"
        "trireme train --ranks 2 --transport shm --self-test  # do the ranks agree?\n"
        "mpirun -n 4 trireme train fashion-cnn                # one job, four ranks\n"
        "trireme train recipes/mnist-classic.toml --data mnist:DIR\n"
        "trireme train --data csv:FILE                        # model and rate from the data\n"
        "trireme train --model mlp:4-8-3 --data iris --set optimizer.momentum=0.5\n"
        "trireme train recipes/fashion-cnn.toml --dry-run     # the plan only\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
