#include "record/progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

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
      break;
  }
  return std::numeric_limits<double>::infinity();
}

}  // namespace

ProgressStyle ChooseProgressStyle(bool quiet, bool json) {
  if (json) return ProgressStyle::kJson;
  if (quiet) return ProgressStyle::kQuiet;
  const char* term = std::getenv("TERM");
  const bool can_redraw = term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
  return isatty(STDERR_FILENO) && can_redraw ? ProgressStyle::kTerminal : ProgressStyle::kPlain;
}

ProgressOutput StandardProgressOutput(ProgressStyle style) {
  std::FILE* file = style == ProgressStyle::kJson ? stdout : stderr;
  return {.write =
              [file](std::string_view text) {
                std::fwrite(text.data(), 1, text.size(), file);
                std::fflush(file);
              },
          .width =
              [] {
                winsize size{};
                const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
                return known ? int{size.ws_col} : 80;
              },
          .seconds =
              [] {
                const auto now = std::chrono::steady_clock::now().time_since_epoch();
                return std::chrono::duration<double>(now).count();
              }};
}

Progress::Progress(ProgressStyle style, ProgressOutput output)
    : style_(style), output_(std::move(output)) {
  next_show_ = output_.seconds();
  if (style_ != ProgressStyle::kTerminal) next_show_ += Interval(style_);
  if (style_ == ProgressStyle::kQuiet) look_at_step_ = std::numeric_limits<int64_t>::max();
}

Progress::~Progress() { Clear(); }

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
    output_.write(StepEvent(progress, pace).Text() + "\n");
  } else if (style_ == ProgressStyle::kPlain) {
    Print(StepLine(progress, pace, 1000));
  } else {
    // The last column stays free: some terminals wrap when it is written.
    output_.write(fmt::format("\r{}\x1b[K", StepLine(progress, pace, output_.width() - 1)));
    drawn_ = true;
  }
}

void Progress::Epoch(const EpochRecord& record, int64_t epochs) {
  if (last_) last_->seconds += record.evaluation_seconds.value_or(0);  // the rate is training's
  if (style_ == ProgressStyle::kQuiet) return;
  if (style_ == ProgressStyle::kJson) {
    output_.write(ToJson(record).Text() + "\n");
    return;
  }
  const double now = output_.seconds();
  if (now < last_epoch_line_ + kEpochLines_s && record.epoch != epochs) return;
  last_epoch_line_ = now;
  Print(EpochLine(record, epochs));
  if (style_ == ProgressStyle::kPlain) next_show_ = now + Interval(style_);
}

void Progress::End(const Summary& summary) {
  Clear();
  if (style_ != ProgressStyle::kJson) return;
  Json event = Json::Object();
  event.AddNew("event", "end");
  const Json end = ToJson(summary);
  for (const auto& [key, value] : end.Members()) event.AddNew(key, value);
  output_.write(event.Text() + "\n");
}

void Progress::Message(std::string_view text) {
  if (style_ == ProgressStyle::kQuiet) return;
  if (style_ == ProgressStyle::kJson) {
    Json event = Json::Object();
    event.AddNew("event", "message").AddNew("text", text);
    output_.write(event.Text() + "\n");
    return;
  }
  Print(text);
}

void Progress::Clear() {
  if (!drawn_) return;
  output_.write("\r\x1b[K");
  drawn_ = false;
}

void Progress::Print(std::string_view line) {
  Clear();
  output_.write(std::string(line) + "\n");
}

}  // namespace trireme
