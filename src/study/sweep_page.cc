#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/machine.h"
#include "base/text.h"
#include "base/version.h"
#include "study/sweep_table.h"

namespace trireme {
namespace {

std::optional<Spread> SecondsOf(const SweepNumbers& row) { return row.seconds; }
std::optional<Spread> SpeedupOf(const SweepNumbers& row) { return row.speedup; }
std::optional<Spread> EfficiencyOf(const SweepNumbers& row) {
  if (!row.efficiency) return {};
  const double scale = 100 * *row.efficiency / std::max(row.speedup->median, 1e-12);
  return Spread{100 * *row.efficiency, row.speedup->low * scale, row.speedup->high * scale};
}

// "transport.ranks" as the words of an axis.
std::string AxisTitle(const std::string& key) {
  static const std::map<std::string, std::string> kNames = {
      {"transport.ranks", "ranks"},
      {"trainer.threads", "threads of a rank"},
      {"data.threads", "loader threads"},
      {"trainer.batch", "samples of a step"},
      {"trainer.batch_per_worker", "samples of a step for each worker"},
      {"data.limit", "training samples"}};
  const auto found = kNames.find(key);
  return found == kNames.end() ? key : found->second;
}

Curve Ideal(const Variation& variation, bool flat) {
  Curve ideal{.name = "ideal", .kind = CurveKind::kIdeal};
  for (const std::string& value : variation.values) {
    ideal.x.push_back(*ParseNumber<double>(value));
  }
  std::sort(ideal.x.begin(), ideal.x.end());
  const double base = *ParseNumber<double>(variation.values[0]);
  for (const double x : ideal.x) ideal.y.push_back(flat ? 100 : x / base);
  return ideal;
}

void AddCharts(const SweepPlan& plan, std::span<const SweepNumbers> rows, size_t axis,
               Section& section) {
  const Variation& variation = plan.vary[axis];
  const std::string over = AxisTitle(variation.key);
  const Axis x{.title = over, .from_zero = false};
  const auto add = [&](const char* title, const Axis& y, PickNumber pick, const Curve* ideal) {
    LineChart chart{.title = fmt::format("{} over {}", title, over), .x = x, .y = y};
    chart.curves = CurvesOver(plan, rows, axis, pick);
    if (chart.curves.empty()) return;
    if (ideal) chart.curves.push_back(*ideal);
    chart.caption = "Bars reach from the slowest to the fastest run.";
    section.blocks.push_back(std::move(chart));
  };
  add("Training time", {.title = "training time", .unit = "s"}, SecondsOf, nullptr);
  if (!CountsHands(variation.key)) return;
  const Curve line = Ideal(variation, false), flat = Ideal(variation, true);
  add("Speed-up", {.title = "speed-up"}, SpeedupOf, &line);
  add("Efficiency", {.title = "efficiency", .unit = "%"}, EfficiencyOf, &flat);
}

}  // namespace

bool HasNumbers(const Variation& variation) {
  return std::all_of(variation.values.begin(), variation.values.end(),
                     [](const std::string& value) { return ParseNumber<double>(value); });
}

std::vector<Curve> CurvesOver(const SweepPlan& plan, std::span<const SweepNumbers> rows,
                              size_t axis, PickNumber pick) {
  std::vector<std::pair<std::string, std::map<double, Spread>>> curves;  // in order of rows
  for (const SweepNumbers& row : rows) {
    const auto number = pick(row);
    if (!number) continue;
    std::vector<std::string> others;
    for (size_t i = 0; i < plan.vary.size(); ++i) {
      if (i == axis) continue;
      others.push_back(
          fmt::format("{} {}", AxisTitle(plan.vary[i].key), row.combination.values[i]));
    }
    const std::string name =
        others.empty() ? "measured" : fmt::format("{}", fmt::join(others, ", "));
    auto at = std::find_if(curves.begin(), curves.end(),
                           [&](const auto& curve) { return curve.first == name; });
    if (at == curves.end()) at = curves.insert(at, {name, {}});
    at->second[*ParseNumber<double>(row.combination.values[axis])] = *number;
  }
  std::vector<Curve> result;
  for (const auto& [name, points] : curves) {
    Curve curve{.name = name};
    for (const auto& [x, spread] : points) {
      curve.x.push_back(x);
      curve.y.push_back(spread.median);
      curve.low.push_back(spread.low);
      curve.high.push_back(spread.high);
    }
    result.push_back(std::move(curve));
  }
  return result;
}

Page SweepPage(const SweepPlan& plan, std::span<const SweepNumbers> rows,
               const std::string& command) {
  Page page{.title = "Sweep of " + plan.recipe};
  std::vector<std::string> keys;
  for (const Variation& variation : plan.vary) {
    keys.push_back(fmt::format("{} = {}", variation.key, fmt::join(variation.values, ", ")));
  }
  page.subtitle = fmt::format("{}; {} of each", fmt::join(keys, "; "), Counted(plan.repeat, "run"));
  Section charts{.title = "Measured"};
  for (size_t i = 0; i < plan.vary.size(); ++i) {
    if (HasNumbers(plan.vary[i])) AddCharts(plan, rows, i, charts);
  }
  charts.blocks.push_back(SweepPageTable(plan, rows));
  page.sections.push_back(std::move(charts));
  Section how{.title = "How"};
  const Machine machine = ReadMachine();
  how.blocks.push_back(Paragraph{fmt::format(
      "trireme {} on {} ({}, {}). Repetitions were interleaved: all combinations once, then again. "
      "Speed-up is by samples/s, against the first value.",
      Version(), machine.host, machine.cpu_model.empty() ? machine.architecture : machine.cpu_model,
      machine.kernel)});
  how.blocks.push_back(Commands{{command}});
  page.sections.push_back(std::move(how));
  return page;
}

}  // namespace trireme
