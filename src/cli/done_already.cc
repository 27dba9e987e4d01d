#include "cli/done_already.h"

#include <fmt/core.h>

#include "base/error.h"
#include "cli/result_text.h"
#include "record/checkpoint_folder.h"
#include "report/run_reader.h"
#include "trainer/start.h"

namespace trireme {
namespace {

std::string TextIn(const Json& json, const char* key) {
  const Json* found = json.Find(key);
  return found && found->IsString() ? found->AsString() : "";
}

// An evaluation ended the run, and what it was measured by has not changed.
std::string EarlyEnd(const TrainerOptions& now, const TrainerOptions& before, const Json& summary,
                     const std::string& run) {
  const std::string reason = TextIn(summary, "end_reason");
  if (reason == "patience" && now.patience && now.patience <= before.patience) {
    return fmt::format("stopped by trainer.patience = {}); set a larger one to train further",
                       before.patience);
  }
  if (reason == "converged") {
    return fmt::format(
        "no step lowers its loss any more); train on with another optimizer: --init {}", run);
  }
  if (reason == "target" && now.target_accuracy > 0 &&
      now.target_accuracy <= summary.At("best_accuracy").AsDouble()) {
    return fmt::format(
        "trainer.target_accuracy = {:g} is reached); set a higher one to train further",
        now.target_accuracy);
  }
  return "";
}

}  // namespace

std::string DoneText(const Job& job, const Recipe& before, const std::string& run) {
  const std::string checkpoints = run + "/checkpoints";
  const auto latest = LinkIn(checkpoints, kLatest);
  const RunData data = ReadRun(run);
  if (!latest || !data.summary) return "";
  try {
    OpenStart(job, Checkpoint(checkpoints + "/" + StepName(*latest)));
    const int64_t steps = data.summary->At("steps").AsInt();
    const std::string length = LengthText(job, steps);
    if (steps == *latest && steps == job.plan.steps) {
      return fmt::format("{} is already done ({}); use --epochs N to train further", run, length);
    }
    // A later start makes the summary an old one.
    const std::string ended = TextIn(*data.summary, "ended_at");
    if (ended.empty() || data.starts.empty() || TextIn(data.starts.back(), "started_at") > ended) {
      return "";
    }
    const std::string early = EarlyEnd(job.recipe.trainer, before.trainer, *data.summary, run);
    if (early.empty()) return "";
    return fmt::format("{} is already done ({}, {}", run, length, early);
  } catch (const Error&) {  // damaged: whoever goes on says what
    return "";
  }
}

}  // namespace trireme
