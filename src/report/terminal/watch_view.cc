#include "report/terminal/watch_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/terminal.h"
#include "base/text.h"
#include "record/progress_text.h"
#include "report/page/run_curves.h"
#include "report/plot/ticks.h"
#include "report/terminal/text_plot.h"

namespace trireme {
namespace {

constexpr double kLongSilence_s = 30;

const MetricsLine kNone;

const MetricsLine& LastEpoch(const RunData& run) {
  return run.epochs.empty() ? kNone : run.epochs.back();
}

const MetricsLine& LastLine(const RunData& run) {
  const MetricsLine& epoch = LastEpoch(run);
  const MetricsLine& step = run.steps.empty() ? epoch : run.steps.back();
  return step.step > epoch.step || std::isnan(epoch.step) ? step : epoch;
}

// Not every line says it: not every epoch is evaluated.
double LastSaid(const std::vector<MetricsLine>& lines, double MetricsLine::*value) {
  for (size_t i = lines.size(); i-- > 0;) {
    if (std::isfinite(lines[i].*value)) return lines[i].*value;
  }
  return NAN;
}

// How far it is to go, in epochs or, where trainer.steps says so, in steps; 0: not known.
struct Goal {
  double epochs = 0, steps = 0;
};

Goal GoalOf(const RunData& run) {
  const auto number = [&](const char* key) {
    return ParseNumber<double>(run.Setting(fmt::format("trainer.{}", key))).value_or(0);
  };
  const double steps = number("steps");
  return steps > 0 ? Goal{0, steps} : Goal{number("epochs"), 0};
}

// By the time that what is done took; nothing before something is.
std::optional<double> SecondsLeft(const RunData& run) {
  const Goal goal = GoalOf(run);
  const MetricsLine& epoch = LastEpoch(run);
  const MetricsLine& last = LastLine(run);
  double steps = goal.steps;
  if (goal.epochs > 0 && epoch.epoch > 0) steps = goal.epochs * epoch.step / epoch.epoch;
  if (!(steps > 0) || !(last.step > 0) || !(last.time_s > 0) || last.step >= steps) return {};
  return last.time_s / last.step * (steps - last.step);
}

// "40 min", "3 h", "2 days": nobody wants to know more.
std::string AgeText(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s", seconds);
  if (seconds < 100 * 60) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{:.0f} h", seconds / 3600);
  return fmt::format("{:.0f} days", seconds / 86400);
}

}  // namespace

std::vector<std::string> WatchFields(const RunData& run, double now) {
  std::vector<std::string> fields{run.path, StateText(run.state)};
  const MetricsLine& epoch = LastEpoch(run);
  const MetricsLine& last = LastLine(run);
  const Goal goal = GoalOf(run);
  const auto add = [&](const char* name, double value) {
    if (std::isfinite(value)) fields.push_back(fmt::format("{} {}", name, FormatLoss(value)));
  };
  if (std::isfinite(epoch.epoch)) {
    const std::string all = goal.epochs > 0 ? "/" + ValueText(goal.epochs) : "";
    fields.push_back(fmt::format("epoch {}{}", ValueText(epoch.epoch), all));
  }
  if (std::isfinite(last.step)) {
    const std::string all = goal.steps > 0 ? "/" + ValueText(goal.steps) : "";
    fields.push_back(fmt::format("step {}{}", ValueText(last.step), all));
  }
  if (run.epochs.empty() && run.steps.empty()) fields.emplace_back("no metrics yet");
  const auto left = SecondsLeft(run);
  if (left && !run.over()) fields.push_back(FormatSeconds(std::ceil(*left)) + " left");
  const double age = now - run.news_at;
  if (run.state.kind != RunState::kDone && age > kLongSilence_s) {
    fields.push_back(fmt::format("last news {} ago", AgeText(age)));
  }
  add("train loss", last.train_loss);
  add("test loss", LastSaid(run.epochs, &MetricsLine::test_loss));
  if (const double accuracy = LastSaid(run.epochs, &MetricsLine::test_accuracy);
      std::isfinite(accuracy)) {
    fields.push_back(fmt::format("test accuracy {:.2f} %", 100 * accuracy));
  }
  add("test RMSE", LastSaid(run.epochs, &MetricsLine::test_rmse));
  add("test R2", LastSaid(run.epochs, &MetricsLine::test_r2));
  if (std::isfinite(last.samples_per_second)) {
    fields.push_back(ValueText(std::round(last.samples_per_second)) + " samples/s");
  }
  return fields;
}

std::string WatchStatus(const RunData& run, double now) {
  return fmt::format("{}", fmt::join(WatchFields(run, now), " | "));
}

std::string WatchTitle(const RunData& run) {
  const MetricsLine& epoch = LastEpoch(run);
  const Goal goal = GoalOf(run);
  std::string text = StateText(run.state);
  if (!run.over() && std::isfinite(epoch.epoch) && goal.epochs > 0) {
    text = fmt::format("epoch {}/{}", ValueText(epoch.epoch), ValueText(goal.epochs));
  }
  if (const double accuracy = LastSaid(run.epochs, &MetricsLine::test_accuracy);
      std::isfinite(accuracy)) {
    text += fmt::format(", {:.2f} %", 100 * accuracy);
  }
  if (const double rmse = LastSaid(run.epochs, &MetricsLine::test_rmse); std::isfinite(rmse)) {
    text += ", " + RmseText(rmse);
  }
  return fmt::format("{} - {}", text, run.name);
}

std::string WatchView(const RunData& run, double now, const ViewSize& size) {
  const NamedRun named{run.name, &run};
  std::vector<LineChart> charts;
  for (const Block& block : LearningCharts({&named, 1})) {
    charts.push_back(std::get<ChartChoice>(block).charts.front());
  }
  std::vector<std::string> bars;
  const TextStyle wide{size.width, 0, size.unicode};
  for (const Block& block : TimeCharts({&named, 1})) {
    bars = TextBars(std::get<BarChart>(block), wide);
  }
  const size_t width = size_t(std::max(size.width, 1));
  std::vector<std::string> fields = WatchFields(run, now);
  for (std::string& field : fields) field = Printable(field, size.unicode);
  std::vector<std::string> lines = Wrap(fields, " | ", width);
  const int rest = size.height - 1 - int(lines.size() + bars.size());
  const int most = std::max(1, rest / 8);  // charts that can still be read
  charts.resize(std::min(charts.size(), size_t(most)));
  for (const LineChart& chart : charts) {
    const int height = std::clamp(rest / int(charts.size()), 8, 24);
    const auto plot = TextLines(chart, {size.width, height, size.unicode});
    lines.insert(lines.end(), plot.begin(), plot.end());
  }
  lines.insert(lines.end(), bars.begin(), bars.end());
  for (const std::string& problem : run.problems) lines.push_back(Printable(problem, size.unicode));
  lines.resize(std::min(lines.size(), size_t(std::max(size.height - 1, 1))));
  std::string text;
  for (const std::string& line : lines) text.append(FirstColumns(line, width)).append("\n");
  return text;
}

}  // namespace trireme
