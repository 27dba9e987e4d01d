#include "cli/train_folds.h"

#include <fmt/core.h>

#include <cstdlib>

#include "base/files.h"
#include "base/signals.h"
#include "base/text.h"
#include "cli/evaluation_text.h"
#include "study/child.h"
#include "study/cross_validation.h"
#include "study/results.h"
#include "transport/launched.h"

namespace trireme {
namespace {

void RefuseOthers(const Args& args) {
  for (const char* flag : {"--resume", "--self-test"}) {
    if (!args.Has(flag)) continue;
    throw UsageError(
        "--folds cannot be used with {}; the same command with the same --out continues the folds",
        flag);
  }
  const auto launched = FindLauncher([](const char* name) { return std::getenv(name); });
  if (launched && !launched->alone()) {
    throw UsageError(
        "--folds starts its own runs and cannot be one of several ranks; start it once, or one "
        "fold per job: --set data.folds=K --set data.fold=I");
  }
}

std::string CommandOf(const Args& args, const std::string& out) {
  std::vector<std::string> words{"trireme", "train"};
  if (const auto recipe = args.Optional("RECIPE")) words.push_back(*recipe);
  for (std::string& word : args.FlagsWithout({"--out", "--quiet", "--json"})) {
    words.push_back(std::move(word));
  }
  words.insert(words.end(), {"--out", out});
  return ShellLine(words);
}

}  // namespace

int CrossValidate(const Args& args, Process& process, Recipe recipe, const std::string& stem) {
  RefuseOthers(args);
  const FoldsPlan plan{.recipe = std::move(recipe),
                       .out = args.Value("--out").value_or(DatedFolder("folds-" + stem)),
                       .parallel = args.Number("--parallel", 1)};
  CheckFolds(plan);
  const Log log(process.log, Log::kNoRank);
  const bool quiet = args.Has("--quiet");
  {
    const Signals signals;  // while the folds train: then there is nothing to save
    StopNotice notice(signals, log, "folds", "stopping the current folds");
    const int code = TrainFolds(
        plan, {.train = [&](const auto& words,
                            const std::string& path) { return RunChild(words, path, notice); },
               .stopped = [&] { return signals.ExitCode(); },
               .say =
                   [&](const std::string& line) {
                     if (!quiet) log.Info("folds", "{}", line);
                   }});
    if (code) {
      log.Info("folds", "stopped by a signal; continue with: {}", CommandOf(args, plan.out));
      return code;
    }
  }
  const FoldsResult result = ReadFolds(plan, log);
  const Json json = FoldsJson(plan, result);
  ReplaceFile(plan.out + "/summary.json", json.Text(2) + "\n");
  WritePage(FoldsPage(plan, result, CommandOf(args, plan.out)), plan.out);
  if (args.Has("--json")) {
    process.out.Write(json.Text() + "\n");
  } else if (!quiet) {
    process.out.Write(FoldsText(result));
    process.out.Print(
        "\nall folds together: each sample is tested once, by the model not trained on it\n{}",
        EvaluationText(result.pooled, result.roc, result.classes,
                       "all of " + plan.recipe.data.source));
    process.out.Print("runs, summary.json and page.html are in {}\n", plan.out);
  }
  return 0;
}

}  // namespace trireme
