#include "cli/result_text.h"

#include <fmt/core.h>

#include "base/text.h"
#include "record/progress_text.h"

namespace trireme {

std::string LengthText(const Job& job, int64_t steps) {
  const double epochs = double(steps) / double(job.plan.steps_per_epoch());
  return fmt::format("{} epoch{}, {}", EpochsText(epochs), epochs == 1 ? "" : "s",
                     Counted(steps, "step"));
}

namespace {

std::string BestScoreText(const Summary& summary) {
  if (summary.best_rmse) return RmseText(*summary.best_rmse);
  return fmt::format("{:.2f} %", 100 * summary.best_accuracy.value_or(0));
}

// Whether an earlier evaluation was better than the last, of what decides about the training.
bool WasBetter(const Summary& summary) {
  const auto& last = summary.validation_numbers ? summary.validation_numbers : summary.test_numbers;
  if (last) return summary.best_rmse < last->rmse;
  return summary.best_accuracy >
         (summary.validation_accuracy ? summary.validation_accuracy : summary.test_accuracy);
}

std::string TestText(const Summary& summary) {
  const std::string loss = FormatLoss(summary.test_loss.value_or(0));
  if (summary.test_numbers) {
    return fmt::format("test {}, test loss {}", NumbersText(*summary.test_numbers), loss);
  }
  return fmt::format("test accuracy {:.2f} %, test loss {}",
                     100 * summary.test_accuracy.value_or(0), loss);
}

std::string PatienceText(const Job& job, const Summary& summary) {
  const int64_t best = summary.best_epoch.value_or(0);
  return fmt::format(
      "stopped after epoch {}: no better than {} for {}; the run keeps epoch {}\n", summary.epochs,
      best < summary.epochs ? fmt::format("epoch {} ({})", best, BestScoreText(summary)) : "before",
      Counted(job.recipe.trainer.patience, "evaluation"), best);
}

// Where the last epoch is worse than the best, and the best is there.
std::string BestText(const Job& job, const Outcome& outcome) {
  const Summary& summary = outcome.summary;
  if (outcome.ending == Ending::kPatience || !job.recipe.trainer.KeepsBest()) return "";
  if (!summary.best_epoch || !WasBetter(summary)) return "";
  return fmt::format("best {} {}{} after epoch {} (--checkpoint best)\n",
                     summary.validation_loss ? "validation" : "test",
                     summary.best_rmse ? "" : "accuracy ", BestScoreText(summary),
                     *summary.best_epoch);
}

std::string ValidationText(const Summary& summary) {
  if (summary.validation_numbers) {
    return fmt::format("; validation {}, {}", RmseText(summary.validation_numbers->rmse),
                       FormatLoss(summary.validation_loss.value_or(0)));
  }
  if (!summary.validation_accuracy) return "";
  return fmt::format("; validation {:.2f} %, {}", 100 * *summary.validation_accuracy,
                     FormatLoss(summary.validation_loss.value_or(0)));
}

}  // namespace

std::string ResultText(const Job& job, const Outcome& outcome, const std::string& run) {
  const Summary& summary = outcome.summary;
  std::string head;
  if (outcome.ending == Ending::kPatience) head = PatienceText(job, summary);
  if (outcome.ending == Ending::kTarget) head = "target accuracy reached: ";
  if (outcome.ending == Ending::kConverged) head = "converged, no step lowers the loss any more: ";
  if (outcome.ending == Ending::kDone) head = "done: ";
  return head + fmt::format(
                    "{} in {} (training {}), {} samples/s\n"
                    "{}{}\n"
                    "{}"
                    "peak memory {}; the run is in {}\n",
                    LengthText(job, summary.steps), FormatSeconds(summary.seconds),
                    FormatSeconds(summary.train_seconds),
                    FormatCount(int64_t(summary.samples_per_second)), TestText(summary),
                    ValidationText(summary), BestText(job, outcome),
                    FormatBytes(double(summary.peak_memory_bytes)), run);
}

}  // namespace trireme
