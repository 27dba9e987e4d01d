#include "study/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"

namespace trireme {
namespace {

std::set<int> SizesUpTo(int to, std::span<const StepMeasurement> fitted,
                        std::span<const StepMeasurement> checks) {
  std::set<int> sizes{to};
  for (int n = 1; n <= std::min(4, to); ++n) sizes.insert(n);
  for (int64_t n = 8; n < to; n *= 2) sizes.insert(int(n));
  for (const auto& runs : {fitted, checks}) {
    for (const StepMeasurement& run : runs) sizes.insert(run.ranks);
  }
  return sizes;
}

double EpochSeconds(const StepModel& model, int ranks, double step_s) {
  return model.StepsPerEpoch(ranks) * step_s;
}

void Measure(std::span<const StepMeasurement> runs, bool fitted, ForecastRow& row) {
  for (const StepMeasurement& run : runs) {
    if (run.ranks != row.ranks) continue;
    row.measured_s = run.step_s;
    row.fitted = fitted;
  }
}

std::string MegabytesText(double bytes) { return fmt::format("{:g} MB", bytes / 1e6); }

Json PartsJson(const StepForecast& step) {
  Json json = Json::Object();
  json.Add("compute", step.compute_s).Add("loader", step.data_s);
  json.Add("stragglers", step.straggler_s).Add("latency", step.latency_s);
  json.Add("bandwidth", step.bandwidth_s);
  return json;
}

Json ChoiceJson(const StepChoice& choice) {
  Json json = Json::Object();
  json.Add("algorithm", choice.algorithm).Add("bucket_mb", choice.bucket_bytes / 1e6);
  return json;
}

}  // namespace

std::vector<ForecastRow> Forecast(const StepFit& fit, const ForecastQuestion& question,
                                  std::span<const StepMeasurement> fitted,
                                  std::span<const StepMeasurement> checks) {
  std::vector<ForecastRow> rows;
  const double bucket = question.bucket_bytes.value_or(fit.bucket_bytes);
  for (const int ranks : SizesUpTo(question.to, fitted, checks)) {
    ForecastRow row{.ranks = ranks};
    row.choice = {
        question.algorithm.value_or(AutomaticAlgorithm(fit.model, fit.cluster, ranks, bucket)),
        bucket};
    row.step = SimulateStep(fit.model, fit.cluster, ranks, row.choice);
    row.best = FindBestChoice(fit.model, fit.cluster, ranks);
    row.epoch_s = EpochSeconds(fit.model, ranks, row.step.step_s);
    row.speedup = (rows.empty() ? row.epoch_s : rows[0].epoch_s) / row.epoch_s;
    row.efficiency = row.speedup / ranks * (rows.empty() ? 1 : rows[0].ranks);
    Measure(checks, false, row);
    Measure(fitted, true, row);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string ForecastText(const StepFit& fit, std::span<const ForecastRow> rows) {
  const bool any = std::any_of(rows.begin(), rows.end(),
                               [](const ForecastRow& row) { return row.measured_s.has_value(); });
  std::string text = fmt::format("{:>7} {:>10} {:>10} {:>9} {:>10} {:<10} {:<17} {:<26}{}\n",
                                 "ranks", "step", "epoch", "speed-up", "efficiency", "bound by",
                                 "algorithm", "best algorithm and bucket", any ? " measured" : "");
  for (const ForecastRow& row : rows) {
    const std::string best = row.ranks == 1
                                 ? "-"
                                 : fmt::format("{}, {}: {}", row.best.choice.algorithm,
                                               MegabytesText(row.best.choice.bucket_bytes),
                                               FormatSeconds(row.best.forecast.step_s));
    std::string measured;
    if (row.measured_s) {
      measured =
          fmt::format("{} ({:+.1f} %{})", FormatSeconds(*row.measured_s),
                      100 * (row.step.step_s / *row.measured_s - 1), row.fitted ? ", fitted" : "");
    }
    std::string line =
        fmt::format("{:>7} {:>10} {:>10} {:>9.2f} {:>8.1f} % {:<10} {:<17} {:<26} {}", row.ranks,
                    FormatSeconds(row.step.step_s), FormatSeconds(row.epoch_s), row.speedup,
                    100 * row.efficiency, row.step.Bound(),
                    row.ranks == 1 ? "-" : row.choice.algorithm, best, measured);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  for (const std::string& remark : fit.remarks) text += remark + "\n";
  return text;
}

Json ForecastJson(const StepFit& fit, std::span<const ForecastRow> rows) {
  Json list = Json::Array();
  for (const ForecastRow& row : rows) {
    Json entry = Json::Object();
    entry.Add("ranks", row.ranks).Add("step_seconds", row.step.step_s);
    entry.Add("epoch_seconds", row.epoch_s).Add("speedup", row.speedup);
    entry.Add("efficiency", row.efficiency).Add("bound_by", row.step.Bound());
    entry.Add("parts", PartsJson(row.step)).Add("choice", ChoiceJson(row.choice));
    Json best = ChoiceJson(row.best.choice);
    entry.Add("best", std::move(best.Add("step_seconds", row.best.forecast.step_s)));
    if (row.measured_s) {
      entry.Add("measured_step_seconds", *row.measured_s).Add("fitted", row.fitted);
    }
    list.Append(std::move(entry));
  }
  Json json = Json::Object();
  json.Add("what", "scale").Add("assumptions", fit.remarks).Add("rows", std::move(list));
  return json;
}

std::string PublishedText(const PublishedForecast& forecast) {
  std::string text = fmt::format("{:>16} {:>10} {:>21} {:>10} {:>9}\n", forecast.table->axis,
                                 "predicted", "interval", "published", "error");
  for (const auto& point : forecast.points) {
    const Predicted& p = point.predicted;
    const bool known = point.published > 0;
    text +=
        fmt::format("{:>16} {:>10} {:>21} {:>10} {:>9}{}\n", point.n, FormatClock(p.seconds),
                    fmt::format("{} to {}", FormatClock(p.low), FormatClock(p.high)),
                    known ? FormatClock(point.published) : "-",
                    known ? fmt::format("{:+.1f} %", 100 * (p.seconds / point.published - 1)) : "-",
                    point.fitted ? "  fitted" : "");
  }
  return text + forecast.assumes + "\nSource: " + std::string(forecast.table->source) + ".\n";
}

Json PublishedJson(const PublishedForecast& forecast) {
  Json list = Json::Array();
  for (const auto& point : forecast.points) {
    Json entry = Json::Object();
    entry.Add("n", point.n).Add("seconds", point.predicted.seconds);
    entry.Add("low", point.predicted.low).Add("high", point.predicted.high);
    entry.Add("published_seconds", point.published > 0 ? Json(point.published) : Json());
    list.Append(std::move(entry.Add("fitted", point.fitted)));
  }
  const ScalingLaw& law = forecast.fit.law;
  Json json = Json::Object();
  json.Add("what", "scale").Add("published", forecast.table->name);
  json.Add("axis", forecast.table->axis).Add("source", forecast.table->source);
  json.Add("serial_seconds", law.serial).Add("parallel_seconds", law.parallel);
  json.Add("exchange_seconds", law.exchange).Add("floor_seconds", law.floor);
  json.Add("assumptions", forecast.assumes).Add("rows", std::move(list));
  return json;
}

}  // namespace trireme
