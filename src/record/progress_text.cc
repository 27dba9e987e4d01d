#include "record/progress_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/text.h"

namespace trireme {
namespace {

template <class T>
std::string OfText(const char* what, const T& done, int64_t all) {
  return all > 0 ? fmt::format("{} {}/{}", what, done, all) : fmt::format("{} {}", what, done);
}

std::string Join(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) {
    if (field.empty()) continue;
    if (!line.empty()) line += " | ";
    line += field;
  }
  return line;
}

std::string LossAndAccuracy(const char* set, const std::optional<double>& loss,
                            const std::optional<double>& accuracy,
                            const std::optional<NumberRecord>& numbers = {}) {
  if (!loss && !accuracy) return "";
  std::string text = set;
  if (loss) text.append(" loss ").append(FormatLoss(*loss));
  if (accuracy) text += fmt::format("{} {:.2f} %", loss ? "," : "", 100 * *accuracy);
  if (numbers) text += ", " + RmseText(numbers->rmse);
  return text;
}

// In short epochs it says little: threads that fetch have hardly begun.
std::string WaitingText(const EpochRecord& record) {
  if (!record.input_bound || record.seconds < 1) return "";
  return fmt::format("waits for samples {:.0f} % of the time", 100 * record.input_bound->share);
}

}  // namespace

std::string StepLine(const StepProgress& progress, const Pace& pace, int width) {
  std::vector<std::string> fields = {
      OfText("epoch", progress.epoch, progress.epochs),
      OfText("step", progress.step, progress.steps),
      "loss " + FormatLoss(progress.loss),
      progress.accuracy ? fmt::format("{:.1f} %", 100 * *progress.accuracy) : "",
      pace.samples_per_second ? CountText(*pace.samples_per_second) + " samples/s" : "",
      pace.seconds_left ? FormatSeconds(*pace.seconds_left) + " left" : ""};
  const size_t room = static_cast<size_t>(std::max(width, 0));
  for (const size_t least : {3u, 4u, 1u, 5u, 2u}) {
    if (Join(fields).size() <= room) break;
    fields[least].clear();
  }
  return Join(fields).substr(0, room);
}

std::string EpochLine(const EpochRecord& record, int64_t epochs) {
  return Join({OfText("epoch", EpochsText(record.epoch), epochs),
               LossAndAccuracy("train", record.train_loss, record.train_accuracy),
               LossAndAccuracy("validation", record.validation_loss, record.validation_accuracy,
                               record.validation_numbers),
               LossAndAccuracy("test", record.test_loss, record.test_accuracy, record.test_numbers),
               CountText(record.samples_per_second) + " samples/s", FormatSeconds(record.seconds),
               record.late, WaitingText(record)});
}

std::string RmseText(double rmse) { return fmt::format("RMSE {:.4g}", rmse); }

std::string NumbersText(const NumberRecord& numbers) {
  return fmt::format("{}, MAE {:.4g}, R2 {}", RmseText(numbers.rmse), numbers.mae,
                     numbers.r2 ? fmt::format("{:.4f}", *numbers.r2) : "-");
}

std::string EpochsText(double epochs) {
  if (epochs == std::floor(epochs)) return std::to_string(int64_t(epochs));
  return epochs < 0.1 ? fmt::format("{:.1g}", epochs) : fmt::format("{:.1f}", epochs);
}

Json StepEvent(const StepProgress& progress, const Pace& pace) {
  Json json = Json::Object();
  json.AddNew("event", "progress").AddNew("epoch", progress.epoch).AddNew("step", progress.step);
  if (progress.epochs > 0) json.AddNew("epochs", progress.epochs);
  if (progress.steps > 0) json.AddNew("steps", progress.steps);
  json.AddNew("loss", progress.loss);
  if (progress.accuracy) json.AddNew("accuracy", *progress.accuracy);
  if (pace.samples_per_second) json.AddNew("samples_per_second", *pace.samples_per_second);
  if (pace.seconds_left) json.AddNew("seconds_left", *pace.seconds_left);
  return json;
}

std::string CountText(double count) {
  if (!(count >= 0)) return "?";
  if (count < 99.95) return fmt::format("{:.1f}", count);
  if (count < 999.5) return fmt::format("{:.0f}", count);
  if (count < 999.5e3) return fmt::format("{:.3g}k", count / 1e3);
  if (count < 999.5e6) return fmt::format("{:.3g}M", count / 1e6);
  return fmt::format("{:.3g}G", count / 1e9);
}

}  // namespace trireme
