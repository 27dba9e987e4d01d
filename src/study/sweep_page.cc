#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/machine.h"
#include "base/text.h"
#include "base/version.h"
#include "study/sweep_table.h"

namespace trireme {
namespace {

std::optional<Spread> SecondsOf(const SweepNumbers& row) { return row.seconds; }
std::optional<Spread> RmseOf(const SweepNumbers& row) { return row.rmse; }
std::optional<Spread> LossOf(const SweepNumbers& row) { return row.loss; }
std::optional<Spread> AccuracyOf(const SweepNumbers& row) {
  if (!row.accuracy) return {};
  return Spread{100 * row.accuracy->median, 100 * row.accuracy->low, 100 * row.accuracy->high};
}
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
      {"trainer.threads", "threads per rank"},
      {"data.threads", "loader threads"},
      {"trainer.batch", "samples per step"},
      {"trainer.batch_per_worker", "samples per step and worker"},
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

// Values that grow by factors rather than by steps: 0.0003, 0.001, 0.003, 0.01.
bool GrowsByFactors(const Variation& variation) {
  std::vector<double> values;
  for (const std::string& value : variation.values) values.push_back(*ParseNumber<double>(value));
  std::sort(values.begin(), values.end());
  if (values.size() < 3 || values[0] <= 0 || values.back() < 4 * values[0]) return false;
  double least[2] = {INFINITY, INFINITY}, most[2] = {0, 0};  // of steps, of factors
  for (size_t i = 1; i < values.size(); ++i) {
    const double gaps[2] = {values[i] - values[i - 1], std::log(values[i] / values[i - 1])};
    for (size_t k = 0; k < 2; ++k) {
      least[k] = std::min(least[k], gaps[k]);
      most[k] = std::max(most[k], gaps[k]);
    }
  }
  return most[1] / least[1] < most[0] / least[0];
}

void AddCharts(const SweepPlan& plan, std::span<const SweepNumbers> rows, size_t axis,
               Section& section) {
  const Variation& variation = plan.vary[axis];
  const std::string over = AxisTitle(variation.key);
  const bool parallelism = SetsParallelism(variation.key);
  const Axis x{
      .title = over, .logarithmic = !parallelism && GrowsByFactors(variation), .from_zero = false};
  const auto add = [&](const char* title, const Axis& y, PickNumber pick, const Curve* ideal) {
    LineChart chart{.title = fmt::format("{} over {}", title, over), .x = x, .y = y};
    chart.curves = CurvesOver(plan, rows, axis, pick);
    if (chart.curves.empty()) return;
    if (ideal) chart.curves.push_back(*ideal);
    if (plan.repeat > 1) chart.caption = "Medians; bars reach from the lowest run to the highest.";
    section.blocks.push_back(std::move(chart));
  };
  const auto learned = [&] {
    add("Test accuracy", {.title = "accuracy", .unit = "%", .from_zero = false}, AccuracyOf,
        nullptr);
    add("Test RMSE", {.title = "RMSE", .from_zero = false}, RmseOf, nullptr);
    add("Test loss", {.title = "loss", .from_zero = false}, LossOf, nullptr);
  };
  if (!parallelism) learned();
  add("Training time", {.title = "training time", .unit = "s"}, SecondsOf, nullptr);
  if (!parallelism) return;
  const Curve line = Ideal(variation, false), flat = Ideal(variation, true);
  add("Speed-up", {.title = "speed-up"}, SpeedupOf, &line);
  add("Efficiency", {.title = "efficiency", .unit = "%"}, EfficiencyOf, &flat);
  learned();
}

// Where no key has numbers: a bar for each combination.
void AddBars(std::span<const SweepNumbers> rows, Section& section) {
  const auto add = [&](const char* title, const Axis& y, PickNumber pick) {
    BarChart chart{.title = title, .y = y, .parts = {y.title}, .values = {{}}};
    chart.bars_title = "combination";
    for (const SweepNumbers& row : rows) {
      const auto number = pick(row);
      if (!number) continue;
      chart.bars.push_back(fmt::format("{}", fmt::join(row.combination.values, ", ")));
      chart.values[0].push_back(number->median);
    }
    if (!chart.bars.empty()) section.blocks.push_back(std::move(chart));
  };
  add("Test accuracy", {.title = "accuracy", .unit = "%"}, AccuracyOf);
  add("Test RMSE", {.title = "RMSE"}, RmseOf);
  add("Test loss", {.title = "loss"}, LossOf);
  add("Training time", {.title = "training time", .unit = "s"}, SecondsOf);
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
  Page page{.title = "Sweep of " + NameOf(plan)};
  std::vector<std::string> keys;
  for (const Variation& variation : plan.vary) {
    keys.push_back(fmt::format("{} = {}", variation.key, fmt::join(variation.values, ", ")));
  }
  page.subtitle = fmt::format("{}; {} of each", fmt::join(keys, "; "), Counted(plan.repeat, "run"));
  Section charts{.title = "Measured"};
  for (size_t i = 0; i < plan.vary.size(); ++i) {
    if (HasNumbers(plan.vary[i])) AddCharts(plan, rows, i, charts);
  }
  if (charts.blocks.empty()) AddBars(rows, charts);
  charts.blocks.insert(charts.blocks.begin(), SweepPageTable(plan, rows));
  page.sections.push_back(std::move(charts));
  Section how{.title = "How"};
  const Machine machine = ReadMachine();
  how.blocks.push_back(Paragraph{fmt::format(
      "trireme {} on {} ({}, {}).{}{}", Version(), machine.host,
      machine.cpu_model.empty() ? machine.architecture : machine.cpu_model, machine.kernel,
      plan.repeat > 1 ? " Repetitions were interleaved: all combinations once, then again." : "",
      CountsAny(plan) ? " Speed-up is computed from samples/s, relative to the first value."
                      : "")});
  how.blocks.push_back(Commands{{command}});
  page.sections.push_back(std::move(how));
  return page;
}

}  // namespace trireme
