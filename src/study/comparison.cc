#include "study/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "base/text.h"
#include "report/run_reader.h"

namespace trireme {
namespace {

std::optional<double> Number(const Json& json, std::string_view key) {
  const Json* found = json.Find(key);
  if (!found || found->IsNull()) return {};
  return found->AsDouble();
}

std::optional<double> IfSaid(double value) {
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

void ReadPoints(const std::string& folder, ComparedRun& run) {
  for (const MetricsLine& line : ReadRun(folder).epochs) {
    run.points.push_back({.seconds = line.time_s,
                          .samples = std::llround(line.samples),
                          .bytes = int64_t(line.bytes),
                          .train_loss = IfSaid(line.train_loss),
                          .test_loss = IfSaid(line.test_loss),
                          .test_accuracy = IfSaid(line.test_accuracy)});
    run.bytes = run.points.back().bytes;
  }
}

std::string Text(const std::optional<double>& value, const char* format, double scale = 1) {
  return value ? fmt::format(fmt::runtime(format), *value * scale) : "-";
}

std::string Field(const std::optional<double>& value) {
  return value ? fmt::format("{:.6g}", *value) : "";
}

Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

}  // namespace

ComparedRun ReadComparedRun(const std::string& folder, int workers, bool local) {
  const std::string path = folder + "/summary.json";
  const Json summary = ParseJson(ReadFile(path), path);
  ComparedRun run;
  run.strategy = summary.At("strategy").AsString();
  run.workers = workers;
  run.ranks = int(summary.At("ranks").AsInt());
  ReadPoints(folder, run);
  run.test_accuracy = Number(summary, "test_accuracy");
  run.test_loss = Number(summary, "test_loss");
  run.train_seconds = summary.At("train_seconds").AsDouble();
  run.samples_per_second = summary.At("samples_per_second").AsDouble();
  const double updates =
      Number(summary, "updates").value_or(summary.At("steps").AsDouble() * (local ? workers : 1));
  run.updates_per_second = updates / std::max(run.train_seconds, 1e-9);
  run.staleness_mean = Number(summary, "staleness_mean");
  run.staleness_most = Number(summary, "staleness_max");
  return run;
}

std::string ComparisonTable(std::span<const ComparedRun> runs) {
  size_t width = 8;
  for (const ComparedRun& run : runs) width = std::max(width, run.strategy.size());
  std::string text = fmt::format("{:<{}} {:>8} {:>10} {:>9} {:>9} {:>10} {:>10} {:>10} {:>13}\n",
                                 "strategy", width, "workers", "accuracy", "loss", "train s",
                                 "samples/s", "updates/s", "traffic", "staleness");
  for (const ComparedRun& run : runs) {
    if (!run.error.empty()) {
      text += fmt::format("{:<{}} failed: {}\n", run.strategy, width, run.error);
      continue;
    }
    const std::string staleness =
        run.staleness_mean
            ? fmt::format("{:.2f}, <= {:g}", *run.staleness_mean, run.staleness_most.value_or(0))
            : "-";
    text += fmt::format("{:<{}} {:>8} {:>10} {:>9} {:>9.2f} {:>10.0f} {:>10.1f} {:>10} {:>13}\n",
                        run.strategy, width, run.workers, Text(run.test_accuracy, "{:.2f} %", 100),
                        run.test_loss ? FormatLoss(*run.test_loss) : "-", run.train_seconds,
                        run.samples_per_second, run.updates_per_second,
                        FormatBytes(double(run.bytes)), staleness);
  }
  return text;
}

std::string ComparisonCsv(std::span<const ComparedRun> runs) {
  std::string text = "strategy,epoch,seconds,samples,bytes,train_loss,test_loss,test_accuracy\n";
  for (const ComparedRun& run : runs) {
    for (size_t i = 0; i < run.points.size(); ++i) {
      const ComparedPoint& p = run.points[i];
      text +=
          fmt::format("{},{},{:.6g},{},{},{},{},{}\n", run.strategy, i + 1, p.seconds, p.samples,
                      p.bytes, Field(p.train_loss), Field(p.test_loss), Field(p.test_accuracy));
    }
  }
  return text;
}

Json ComparisonJson(std::span<const ComparedRun> runs) {
  Json list = Json::Array();
  for (const ComparedRun& run : runs) {
    Json entry = Json::Object();
    entry.Add("strategy", run.strategy);
    if (!run.error.empty()) {
      list.Append(std::move(entry.Add("error", run.error)));
      continue;
    }
    Json points = Json::Array();
    for (const ComparedPoint& p : run.points) {
      Json point = Json::Object();
      point.Add("seconds", p.seconds).Add("samples", p.samples).Add("bytes", p.bytes);
      point.Add("train_loss", OrNull(p.train_loss)).Add("test_loss", OrNull(p.test_loss));
      points.Append(std::move(point.Add("test_accuracy", OrNull(p.test_accuracy))));
    }
    entry.Add("workers", run.workers).Add("ranks", run.ranks);
    entry.Add("test_accuracy", OrNull(run.test_accuracy)).Add("test_loss", OrNull(run.test_loss));
    entry.Add("train_seconds", run.train_seconds)
        .Add("samples_per_second", run.samples_per_second)
        .Add("updates_per_second", run.updates_per_second)
        .Add("bytes", run.bytes)
        .Add("staleness_mean", OrNull(run.staleness_mean))
        .Add("staleness_max", OrNull(run.staleness_most))
        .Add("points", std::move(points));
    list.Append(std::move(entry));
  }
  return list;
}

}  // namespace trireme
