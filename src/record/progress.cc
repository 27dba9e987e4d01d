#include "record/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.h"

namespace trireme {
namespace {

constexpr double kRateMemory_s = 2;    // the rate forgets what is older
constexpr double kEpochLines_s = 0.5;  // Iris makes thousands of epochs a second

double Interval(ProgressStyle style) {
  switch (style) {
    case ProgressStyle::kTerminal:
      return 0.1;
    case ProgressStyle::kJson:
      return 1;
    case ProgressStyle::kPlain:
      return 5;
    case ProgressStyle::kQuiet:
    case ProgressStyle::kHandedOn:
      break;
  }
  return std::numeric_limits<double>::infinity();
}

}  // namespace

ProgressStyle ChooseProgressStyle(bool quiet, bool json) {
  if (json) return ProgressStyle::kJson;
  if (quiet) return ProgressStyle::kQuiet;
  return IsScreen(STDERR_FILENO) ? ProgressStyle::kTerminal : ProgressStyle::kPlain;
}

ProgressOutput StandardProgressOutput(ProgressStyle style, LogOutput& log,
                                      std::function<void(std::string_view)> event) {
  ProgressOutput output{.line = [&log](std::string_view text,
                                       const Highlight& highlight) { log.Line(text, highlight); },
                        .live = [&log](std::string_view text) { log.ShowLive(text); },
                        .width = [&log] { return log.width(); },
                        .seconds = Now};
  if (style == ProgressStyle::kJson) {
    output.line = [event = std::move(event)](std::string_view text, const Highlight&) {
      event(text);
    };
  }
  return output;
}

Progress::Progress(ProgressStyle style, ProgressOutput output)
    : style_(style), output_(std::move(output)) {
  next_show_ = output_.seconds();
  if (style_ != ProgressStyle::kTerminal) next_show_ += Interval(style_);
  if (std::isinf(Interval(style_))) look_at_step_ = std::numeric_limits<int64_t>::max();
}

Progress::~Progress() { Hide(); }

// Looking at the clock costs as much as a small step's bookkeeping, so it is looked at only about
// four times per interval, as far as the last steps' pace tells.
bool Progress::IsDue(int64_t step) {
  now_ = output_.seconds();
  const double pause = std::min(Interval(style_), 1.0) / 4;
  int64_t stride = 1;
  if (looked_ && now_ > looked_->seconds && step > looked_->step) {
    const double passed = static_cast<double>(step - looked_->step);
    const double expected = passed * pause / (now_ - looked_->seconds);
    stride = std::max<int64_t>(1, static_cast<int64_t>(std::min(expected, 2 * passed + 1)));
  }
  looked_ = Mark{now_, step, 0};
  look_at_step_ = step + stride;
  return now_ >= next_show_ || !first_;  // the first one is where measuring begins
}

Pace Progress::Measure(const StepProgress& progress) {
  const Mark mark{now_, progress.step, progress.samples};
  if (!first_) first_ = mark;
  if (last_ && now_ > last_->seconds) {
    const double elapsed = now_ - last_->seconds;
    const double current = static_cast<double>(progress.samples - last_->samples) / elapsed;
    const double weight = rate_ ? 1 - std::exp(-elapsed / kRateMemory_s) : 1;
    rate_ = rate_.value_or(0) + weight * (current - rate_.value_or(0));
  }
  last_ = mark;

  Pace pace{.samples_per_second = rate_, .seconds_left = std::nullopt};
  if (progress.steps > 0 && progress.step > first_->step) {
    const double per_step =
        (now_ - first_->seconds) / static_cast<double>(progress.step - first_->step);
    const int64_t left = std::max<int64_t>(0, progress.steps - progress.step);
    pace.seconds_left = per_step * static_cast<double>(left);
  }
  return pace;
}

void Progress::Show(const StepProgress& progress) {
  const Pace pace = Measure(progress);
  if (now_ < next_show_) return;
  next_show_ = now_ + Interval(style_);
  if (style_ == ProgressStyle::kJson) {
    output_.line(StepEvent(progress, pace).Text(), {});
  } else if (style_ == ProgressStyle::kPlain) {
    output_.line(StepLine(progress, pace, 1000), {});
  } else {
    output_.live(StepLine(progress, pace, output_.width()));
  }
}

void Progress::Epoch(const EpochRecord& record, int64_t epochs) {
  if (last_) last_->seconds += record.evaluation_seconds.value_or(0);  // the rate is training's
  if (style_ == ProgressStyle::kQuiet) return;
  if (style_ == ProgressStyle::kHandedOn) return output_.epoch(record, epochs);
  if (style_ == ProgressStyle::kJson) {
    output_.line(ToJson(record).Text(), {});
    return;
  }
  const double now = output_.seconds();
  if (now < last_epoch_line_ + kEpochLines_s && record.epoch <= double(epochs - 1)) {
    return;
  }
  last_epoch_line_ = now;
  const std::string line = EpochLine(record, epochs);
  std::string accuracy;
  if (record.test_accuracy) accuracy = fmt::format("{:.2f} %", 100 * *record.test_accuracy);
  if (record.test_numbers) accuracy = RmseText(record.test_numbers->rmse);
  const size_t at = line.find(accuracy, std::min(line.size(), line.find("| test ")));
  output_.line(line, at == line.npos ? Highlight{} : Highlight{at, accuracy.size(), Ink::kGreen});
  if (style_ == ProgressStyle::kPlain) next_show_ = now + Interval(style_);
}

void Progress::End(const Summary& summary) {
  output_.live("");
  if (style_ != ProgressStyle::kJson) return;
  Json event = Json::Object();
  event.AddNew("event", "end");
  const Json end = ToJson(summary);
  for (const auto& [key, value] : end.Members()) event.AddNew(key, value);
  output_.line(event.Text(), {});
}

void Progress::Message(std::string_view text) {
  if (style_ == ProgressStyle::kQuiet) return;
  if (style_ == ProgressStyle::kJson) {
    Json event = Json::Object();
    event.AddNew("event", "message").AddNew("text", text);
    output_.line(event.Text(), {});
    return;
  }
  output_.line(text, {});
}

}  // namespace trireme
