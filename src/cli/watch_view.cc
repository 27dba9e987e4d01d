#include "cli/watch_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "record/page/run_curves.h"
#include "record/plot/text_plot.h"
#include "record/plot/ticks.h"

namespace trireme {
namespace {

constexpr double kLongSilence_s = 30;

std::string SettingOf(const RunData& run, std::string_view section, std::string_view key) {
  for (const TomlEntry& entry : run.config) {
    if (entry.section == section && entry.key == key) return entry.value.Shown();
  }
  return "";
}

// A name of a folder must not steer the terminal.
std::string Printable(const std::string& text, bool unicode) {
  std::string out;
  for (const char c : text) {
    const bool control = uint8_t(c) < 0x20 || c == 0x7F;
    const bool wide = uint8_t(c) >= 0x80;
    out += control || (wide && !unicode) ? '?' : c;
  }
  return unicode && !IsUtf8(out) ? Printable(out, false) : out;
}

}  // namespace

std::string WatchStatus(const RunData& run, double silent_s) {
  std::string text = fmt::format("{} | {}", run.path, run.over ? "ended" : "running");
  const MetricsLine none;
  const MetricsLine& epoch = run.epochs.empty() ? none : run.epochs.back();
  const MetricsLine& step = run.steps.empty() ? epoch : run.steps.back();
  const MetricsLine& last = step.step > epoch.step || std::isnan(epoch.step) ? step : epoch;
  const auto add = [&](const char* name, double value, const char* unit, double factor = 1) {
    if (std::isfinite(value)) {
      text +=
          fmt::format(" | {} {}{}", name, ValueText(std::round(value * factor * 1e4) / 1e4), unit);
    }
  };
  if (std::isfinite(epoch.epoch)) {
    text += fmt::format(" | epoch {}", ValueText(epoch.epoch));
    const std::string epochs = SettingOf(run, "trainer", "epochs");
    const std::string steps = SettingOf(run, "trainer", "steps");
    if (!epochs.empty() && (steps.empty() || steps == "0")) text += "/" + epochs;
  }
  add("step", last.step, "");
  add("train loss", last.train_loss, "");
  add("test loss", epoch.test_loss, "");
  add("test accuracy", epoch.test_accuracy, " %", 100);
  if (std::isfinite(last.samples_per_second)) {
    add("", std::round(last.samples_per_second), " samples/s");
  }
  if (run.epochs.empty() && run.steps.empty()) text += " | no metrics yet";
  if (!run.over && silent_s > kLongSilence_s) {
    text += fmt::format(" | nothing new for {}", FormatSeconds(silent_s));
  }
  return text;
}

std::string WatchView(const RunData& run, double silent_s, const ViewSize& size) {
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
  std::vector<std::string> lines{Printable(WatchStatus(run, silent_s), size.unicode)};
  const int rest = size.height - 2 - int(bars.size());
  const int most = std::max(1, rest / 8);  // charts that can still be read
  charts.resize(std::min(charts.size(), size_t(most)));
  for (const LineChart& chart : charts) {
    const int height = std::clamp(rest / int(charts.size()), 8, 24);
    const auto plot = TextLines(chart, {size.width, height, size.unicode});
    lines.insert(lines.end(), plot.begin(), plot.end());
  }
  lines.insert(lines.end(), bars.begin(), bars.end());
  for (const std::string& problem : run.problems) lines.push_back(Printable(problem, size.unicode));
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace trireme
