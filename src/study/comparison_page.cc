#include "study/comparison_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/page/run_curves.h"

namespace trireme {
namespace {

using Reached = std::optional<double> ComparedPoint::*;

double AsNumber(const std::optional<double>& value) { return value.value_or(NAN); }

struct Overs {
  UnitChoice time, bytes;
};

Overs OversOf(std::span<const ComparedRun> runs) {
  double seconds = 0, bytes = 0;
  for (const ComparedRun& run : runs) {
    seconds = std::max(seconds, run.train_seconds);
    bytes = std::max(bytes, double(run.bytes));
  }
  return {TimeUnit(seconds), ByteUnit(bytes)};
}

ChartChoice ChoiceFor(std::span<const ComparedRun> runs, const std::string& title, const Axis& y,
                      Reached reached, double factor) {
  const Overs overs = OversOf(runs);
  ChartChoice choice;
  choice.names = {"time", "samples", "bytes"};
  const Axis axes[] = {{"training time", overs.time.unit},
                       {"samples trained", ""},
                       {"sent between ranks", overs.bytes.unit}};
  for (size_t over = 0; over < std::size(axes); ++over) {
    LineChart chart{title, axes[over], y, {}, ""};
    for (const ComparedRun& run : runs) {
      Curve curve{run.strategy, CurveKind::kMeasured, {}, {}, {}, {}};
      curve.style = int(&run - runs.data());
      for (const ComparedPoint& point : run.points) {
        const double places[] = {point.seconds / overs.time.per, double(point.samples),
                                 double(point.bytes) / overs.bytes.per};
        if (!(point.*reached)) continue;
        curve.x.push_back(places[over]);
        curve.y.push_back(*(point.*reached) * factor);
      }
      if (!curve.x.empty()) chart.curves.push_back(std::move(curve));
    }
    if (y.title == "loss") FitAxis(chart.y, chart.curves, Quantity::kLoss);
    choice.charts.push_back(std::move(chart));
  }
  return choice;
}

BarChart BarsFor(std::span<const ComparedRun> runs, const std::string& title, const Axis& y,
                 const std::string& part, double (*value)(const ComparedRun&)) {
  BarChart chart{title, y, {}, {part}, {{}}, "", "strategy"};
  for (const ComparedRun& run : runs) {
    const double number = value(run);
    if (!run.error.empty() || std::isnan(number)) continue;
    chart.bars.push_back(run.strategy);
    chart.values[0].push_back(number);
  }
  return chart;
}

// The best of each column that has one, where they differ.
void MarkBest(std::span<const ComparedRun> runs, PageTable& table) {
  const struct {
    size_t column;
    double sign;
    double (*value)(const ComparedRun&);
  } columns[] = {
      {2, 1, [](const ComparedRun& run) { return AsNumber(run.test_accuracy); }},
      {3, -1, [](const ComparedRun& run) { return AsNumber(run.test_loss); }},
      {4, -1, [](const ComparedRun& run) { return run.train_seconds; }},
      {5, 1, [](const ComparedRun& run) { return run.samples_per_second; }},
      {7, -1, [](const ComparedRun& run) { return double(run.bytes); }},
  };
  for (const auto& column : columns) {
    double most = -INFINITY, least = INFINITY;
    std::vector<double> worth;
    for (const ComparedRun& run : runs) {
      worth.push_back(run.error.empty() ? column.sign * column.value(run) : NAN);
      if (std::isnan(worth.back())) continue;
      most = std::max(most, worth.back());
      least = std::min(least, worth.back());
    }
    for (size_t i = 0; i < worth.size(); ++i) {
      if (worth[i] == most && most > least) table.bold.push_back({i, column.column});
    }
  }
}

PageTable ResultsOf(std::span<const ComparedRun> runs) {
  PageTable table{"",
                  {"strategy", "workers", "test accuracy", "test loss", "training time",
                   "samples/s", "updates/s", "traffic", "mean staleness", "largest staleness"},
                  {},
                  ""};
  const auto text = [](const std::optional<double>& value, const char* format, double scale = 1) {
    return value ? fmt::format(fmt::runtime(format), *value * scale) : std::string("-");
  };
  for (const ComparedRun& run : runs) {
    std::vector<std::string> row{run.strategy, fmt::format("{}", run.workers)};
    if (!run.error.empty()) {
      row = {run.strategy, "failed"};
    } else {
      row.push_back(text(run.test_accuracy, "{:.2f} %", 100));
      row.push_back(run.test_loss ? FormatLoss(*run.test_loss) : "-");
      row.push_back(FormatSeconds(run.train_seconds));
      row.push_back(FormatCount(std::llround(run.samples_per_second)));
      row.push_back(fmt::format("{:.1f}", run.updates_per_second));
      row.push_back(FormatBytes(double(run.bytes)));
      row.push_back(text(run.staleness_mean, "{:.2f}"));
      row.push_back(text(run.staleness_most, "{:.0f}"));
    }
    row.resize(table.header.size(), "-");
    table.rows.push_back(std::move(row));
  }
  MarkBest(runs, table);
  return table;
}

}  // namespace

Page ComparisonPage(const std::string& what, std::span<const ComparedRun> runs,
                    const std::string& command) {
  Page page{"Comparison of strategies",
            fmt::format("{}, {} strategies under the same budget", what, runs.size()),
            {}};
  Section results{"Result", {ResultsOf(runs)}};
  for (const ComparedRun& run : runs) {
    if (run.error.empty()) continue;
    results.blocks.push_back(Paragraph{fmt::format("{} failed: {}", run.strategy, run.error)});
  }
  page.sections.push_back(std::move(results));
  page.sections.push_back(
      {"Learning",
       {ChoiceFor(runs, "Loss on test samples", {"loss", ""}, &ComparedPoint::test_loss, 1),
        ChoiceFor(runs, "Accuracy on test samples", {"accuracy", "%", false, false},
                  &ComparedPoint::test_accuracy, 100),
        ChoiceFor(runs, "Loss on training samples", {"loss", ""}, &ComparedPoint::train_loss, 1)}});
  Section speed{"Speed",
                {BarsFor(runs, "Updates of weights", {"updates", "1/s"}, "updates",
                         [](const ComparedRun& run) { return run.updates_per_second; }),
                 BarsFor(runs, "Throughput", {"throughput", "samples/s"}, "throughput",
                         [](const ComparedRun& run) { return run.samples_per_second; })}};
  BarChart staleness =
      BarsFor(runs, "Mean staleness of updates", {"staleness", "updates"}, "mean staleness",
              [](const ComparedRun& run) { return AsNumber(run.staleness_mean); });
  if (!staleness.bars.empty()) speed.blocks.push_back(std::move(staleness));
  page.sections.push_back(std::move(speed));
  page.sections.push_back({"How to repeat it", {Commands{{command}}}});
  return page;
}

}  // namespace trireme
