#include "report/page/run_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace trireme {
namespace {

using LineValue = double MetricsLine::*;

// What is drawn of a run: the lines within epochs where there are any and they say it.
struct Wanted {
  std::string name;
  LineValue value;
  bool epochs_only = false;
  double factor = 1;
};

struct Over {
  const char* name;
  Axis axis;
};

bool Says(const std::vector<MetricsLine>& lines, LineValue value) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const MetricsLine& line) { return std::isfinite(line.*value); });
}

const std::vector<MetricsLine>& LinesFor(const RunData& run, const Wanted& wanted) {
  const bool fine = !wanted.epochs_only && run.steps.size() > 1 && Says(run.steps, wanted.value);
  return fine ? run.steps : run.epochs;
}

// Lines within an epoch say how many are done, not how much of the next one.
double StepsPerEpoch(const RunData& run) {
  if (run.epochs.empty()) return NAN;
  const MetricsLine& last = run.epochs.back();
  return last.epoch > 0 ? last.step / last.epoch : NAN;
}

double MostSeconds(std::span<const NamedRun> runs) {
  double most = 0;
  for (const NamedRun& run : runs) {
    for (const auto* lines : {&run.data->epochs, &run.data->steps}) {
      if (!lines->empty() && std::isfinite(lines->back().time_s)) {
        most = std::max(most, lines->back().time_s);
      }
    }
  }
  return most;
}

Curve CurveFor(const RunData& run, const Wanted& wanted, size_t over, const UnitChoice& time) {
  const auto& lines = LinesFor(run, wanted);
  const double steps_per_epoch = StepsPerEpoch(run);
  Curve curve{wanted.name, CurveKind::kMeasured, {}, {}, {}, {}};
  double last_x = -INFINITY;
  for (const MetricsLine& line : lines) {
    double x = line.step;
    if (over == 1) {
      x = &lines == &run.epochs || !(steps_per_epoch > 0) ? line.epoch
                                                          : line.step / steps_per_epoch;
    } else if (over == 2) {
      x = line.time_s / time.per;
    } else if (over == 3) {
      x = line.samples;
    }
    // A line without the value is no gap in the curve: not every epoch is evaluated.
    if (!std::isfinite(x) || std::isnan(line.*wanted.value) || x < last_x) continue;
    last_x = x;
    curve.x.push_back(x);
    curve.y.push_back(line.*wanted.value * wanted.factor);
  }
  return curve;
}

struct NamedWanted {
  const RunData* run;
  Wanted wanted;
  int style = 0;
};

struct WantedChart {
  std::string title;
  Axis y;
  std::optional<Quantity> fitted;  // the axis, to the values
};

// One chart per choice of x; nothing where no run says it.
void AddChoice(std::vector<Block>& blocks, const WantedChart& wanted,
               const std::vector<NamedWanted>& curves, const UnitChoice& time) {
  const Over overs[] = {{"steps", {"step", ""}},
                        {"epochs", {"epoch", ""}},
                        {"time", {"training time", time.unit}},
                        {"samples", {"samples trained", ""}}};
  ChartChoice choice;
  bool any = false;
  for (size_t over = 0; over < std::size(overs); ++over) {
    LineChart chart{wanted.title, overs[over].axis, wanted.y, {}, "", curves.size() < kManyRuns};
    for (const NamedWanted& each : curves) {
      Curve curve = CurveFor(*each.run, each.wanted, over, time);
      if (curve.x.empty()) continue;
      any = true;
      curve.style = each.style;
      if (curve.style >= kOtherStyles) curve.kind = CurveKind::kOther;
      chart.curves.push_back(std::move(curve));
    }
    if (wanted.fitted) FitAxis(chart.y, chart.curves, *wanted.fitted);
    choice.names.emplace_back(overs[over].name);
    choice.charts.push_back(std::move(chart));
  }
  if (any) blocks.push_back(std::move(choice));
}

std::vector<NamedWanted> OfAll(std::span<const NamedRun> runs, const std::string& what,
                               LineValue value, bool epochs_only, double factor = 1) {
  std::vector<NamedWanted> curves;
  for (const NamedRun& run : runs) {
    const std::string name = runs.size() == 1 ? what : run.name;
    curves.push_back({run.data, {name, value, epochs_only, factor}, run.style});
  }
  return curves;
}

// Training and test in one picture where there is one run, else in two.
void AddPair(std::vector<Block>& blocks, std::span<const NamedRun> runs, const WantedChart& what,
             LineValue train, LineValue test, double factor, const UnitChoice& time) {
  auto trained = OfAll(runs, "training", train, false, factor);
  auto tested = OfAll(runs, "test", test, true, factor);
  if (runs.size() == 1) {
    tested.front().style = 1;
    trained.push_back(tested.front());
    return AddChoice(blocks, what, trained, time);
  }
  AddChoice(blocks, {what.title + " on test samples", what.y, what.fitted}, tested, time);
  AddChoice(blocks, {what.title + " on training samples", what.y, what.fitted}, trained, time);
}

// Every rank's seconds over the whole run, in the order of ranks.
std::map<int, RankRecord> RankSums(const RunData& run) {
  std::map<int, RankRecord> sums;
  const auto add = [&](const RankRecord& rank) {
    RankRecord& sum = sums[rank.rank];
    const StepTimes& t = rank.times;
    sum.times.data += t.data;
    sum.times.forward += t.forward;
    sum.times.backward += t.backward;
    sum.times.communication += t.communication;
    sum.times.update += t.update;
    sum.times.hidden += t.hidden;
  };
  for (const MetricsLine& line : run.epochs) {
    for (const RankRecord& rank : line.ranks) add(rank);
    if (line.ranks.empty()) add({0, line.times, 0, 0});
  }
  if (run.epochs.empty()) {  // it has not come so far
    for (const MetricsLine& line : run.steps) add({0, line.times, 0, 0});
  }
  return sums;
}

}  // namespace

void FitAxis(Axis& axis, std::span<const Curve> curves, Quantity quantity) {
  std::vector<double> values;
  for (const Curve& curve : curves) {
    for (const double value : curve.y) {
      if (std::isfinite(value)) values.push_back(value);
    }
  }
  if (values.size() < 2) return;
  std::sort(values.begin(), values.end());
  const double least = values.front(), most = values.back();
  if (!(least > 0)) return;
  const bool wide = quantity == Quantity::kLoss
                        ? most / least >= 20
                        : values[values.size() / 4] <= most / 10 && least >= most * 1e-4;
  axis.logarithmic = wide;
  axis.from_zero = !wide && least < 0.4 * most;
}

UnitChoice TimeUnit(double most_seconds) {
  if (most_seconds > 6 * 3600) return {"h", 3600};
  if (most_seconds > 600) return {"min", 60};
  if (most_seconds < 0.5) return {"ms", 1e-3};
  return {"s", 1};
}

UnitChoice ByteUnit(double most_bytes) {
  if (most_bytes > 2e12) return {"TB", 1e12};
  if (most_bytes > 2e9) return {"GB", 1e9};
  if (most_bytes > 2e6) return {"MB", 1e6};
  if (most_bytes > 2e3) return {"kB", 1e3};
  return {"B", 1};
}

std::vector<Block> LearningCharts(std::span<const NamedRun> runs) {
  const UnitChoice time = TimeUnit(MostSeconds(runs));
  std::vector<Block> blocks;
  AddPair(blocks, runs, {"Loss", {"loss", ""}, Quantity::kLoss}, &MetricsLine::train_loss,
          &MetricsLine::test_loss, 1, time);
  AddPair(blocks, runs, {"Accuracy", {"accuracy", "%", false, false}, {}},
          &MetricsLine::train_accuracy, &MetricsLine::test_accuracy, 100, time);
  AddChoice(blocks, {"RMSE on test samples", {"RMSE", ""}, Quantity::kLoss},
            OfAll(runs, "test", &MetricsLine::test_rmse, true), time);
  AddChoice(blocks, {"R2 on test samples", {"R2", "", false, false}, {}},
            OfAll(runs, "test", &MetricsLine::test_r2, true), time);
  return blocks;
}

std::vector<Block> SpeedCharts(std::span<const NamedRun> runs) {
  const UnitChoice time = TimeUnit(MostSeconds(runs));
  std::vector<Block> blocks;
  AddChoice(blocks, {"Throughput", {"throughput", "samples/s"}, {}},
            OfAll(runs, "throughput", &MetricsLine::samples_per_second, false), time);
  AddChoice(blocks, {"Learning rate", {"learning rate", ""}, Quantity::kRate},
            OfAll(runs, "learning rate", &MetricsLine::lr, false), time);
  double most = 0;
  for (const NamedRun& run : runs) {
    if (!run.data->epochs.empty()) most = std::max(most, run.data->epochs.back().bytes);
  }
  const UnitChoice bytes = ByteUnit(most);
  if (most > 0) {
    AddChoice(blocks, {"Data sent between ranks", {"sent so far", bytes.unit}, {}},
              OfAll(runs, "sent", &MetricsLine::bytes, true, 1 / bytes.per), time);
  }
  return blocks;
}

std::vector<Block> TimeCharts(std::span<const NamedRun> runs) {
  BarChart chart;
  chart.title = "Where the time went";
  chart.bars_title = runs.size() == 1 ? "rank" : "run and rank";
  chart.parts = {"data", "forward", "backward", "communication waited for", "update"};
  chart.values.resize(chart.parts.size());
  double hidden = 0, most = 0;
  for (const NamedRun& run : runs) {
    for (const auto& [rank, sum] : RankSums(*run.data)) {
      const StepTimes& t = sum.times;
      if (!(t.Total() > 0)) continue;
      const double parts[] = {t.data, t.forward, t.backward, t.communication, t.update};
      for (size_t i = 0; i < std::size(parts); ++i) chart.values[i].push_back(parts[i]);
      chart.bars.push_back(runs.size() == 1 ? fmt::format("{}", rank)
                                            : fmt::format("{} r{}", run.name, rank));
      hidden += t.hidden;
      most = std::max(most, t.Total());
    }
  }
  if (chart.bars.empty()) return {};
  const UnitChoice time = TimeUnit(most);
  chart.y = {"time in steps", time.unit};
  for (auto& part : chart.values) {
    for (double& value : part) value /= time.per;
  }
  if (hidden > 0) {
    chart.caption = fmt::format(
        "Another {:.3g} {} of communication over all ranks was hidden behind computing.",
        hidden / time.per, time.unit);
  }
  for (const NamedRun& run : runs) {
    if (run.data->epochs.empty() || run.data->epochs.back().input_bound.empty()) continue;
    if (!chart.caption.empty()) chart.caption += " ";
    chart.caption +=
        fmt::format("{}, last epoch: {}.", run.name, run.data->epochs.back().input_bound);
  }
  return {chart};
}

}  // namespace trireme
