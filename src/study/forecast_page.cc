#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "study/forecast.h"

namespace trireme {
namespace {

Axis RanksAxis(int most) {
  return {.title = "ranks", .logarithmic = most > 16, .from_zero = false};
}

// One number of each row as a curve.
template <class Pick>
Curve RowCurve(std::span<const ForecastRow> rows, const char* name, CurveKind kind, Pick pick) {
  Curve curve{.name = name, .kind = kind};
  for (const ForecastRow& row : rows) {
    const std::optional<double> value = pick(row);
    if (!value) continue;
    curve.x.push_back(row.ranks);
    curve.y.push_back(*value);
  }
  return curve;
}

LineChart StepChart(std::span<const ForecastRow> rows) {
  LineChart chart{.title = "Step time over ranks",
                  .x = RanksAxis(rows.back().ranks),
                  .y = {.title = "step time", .unit = "ms"}};
  chart.curves.push_back(RowCurve(rows, "predicted", CurveKind::kPredicted,
                                  [](auto& row) { return std::optional(1e3 * row.step.step_s); }));
  chart.curves.push_back(
      RowCurve(rows, "predicted, best bucket and algorithm", CurveKind::kPredicted,
               [](auto& row) { return std::optional(1e3 * row.best.forecast.step_s); }));
  Curve measured = RowCurve(rows, "measured", CurveKind::kMeasured, [](auto& row) {
    return row.measured_s ? std::optional(1e3 * *row.measured_s) : std::nullopt;
  });
  if (!measured.x.empty()) chart.curves.push_back(std::move(measured));
  chart.caption =
      "Measured points that the model was fitted to lie on the curve; the table says which.";
  return chart;
}

LineChart SpeedChart(std::span<const ForecastRow> rows) {
  const bool logarithmic = rows.back().ranks > 16;
  LineChart chart{
      .title = "Speed-up over ranks",
      .x = RanksAxis(rows.back().ranks),
      .y = {.title = "speed-up", .logarithmic = logarithmic, .from_zero = !logarithmic}};
  chart.curves.push_back(RowCurve(rows, "predicted", CurveKind::kPredicted,
                                  [](auto& row) { return std::optional(row.speedup); }));
  chart.curves.push_back(RowCurve(rows, "ideal", CurveKind::kIdeal, [&](auto& row) {
    return std::optional(double(row.ranks) / rows[0].ranks);
  }));
  return chart;
}

BarChart PartsChart(std::span<const ForecastRow> rows) {
  BarChart chart{.title = "Parts of a step",
                 .y = {.title = "step time", .unit = "ms"},
                 .parts = {"compute", "loader", "stragglers", "latency", "bandwidth"}};
  chart.values.resize(chart.parts.size());
  for (const ForecastRow& row : rows) {
    chart.bars.push_back(fmt::format("{} rank{}", row.ranks, row.ranks == 1 ? "" : "s"));
    const double parts[] = {row.step.compute_s, row.step.data_s, row.step.straggler_s,
                            row.step.latency_s, row.step.bandwidth_s};
    for (size_t i = 0; i < chart.values.size(); ++i) chart.values[i].push_back(1e3 * parts[i]);
  }
  chart.caption = "Latency and bandwidth are the communication that computing does not hide.";
  return chart;
}

PageTable RowsTable(std::span<const ForecastRow> rows) {
  PageTable table{.title = "Predictions",
                  .header = {"ranks", "step", "epoch", "speed-up", "efficiency", "bound by",
                             "measured step", "error"}};
  for (const ForecastRow& row : rows) {
    const std::string error =
        row.measured_s ? fmt::format("{:+.1f} %{}", 100 * (row.step.step_s / *row.measured_s - 1),
                                     row.fitted ? " (fitted)" : "")
                       : "-";
    table.rows.push_back({std::to_string(row.ranks), FormatSeconds(row.step.step_s),
                          FormatSeconds(row.epoch_s), fmt::format("{:.2f}", row.speedup),
                          fmt::format("{:.1f} %", 100 * row.efficiency),
                          std::string(row.step.Bound()),
                          row.measured_s ? FormatSeconds(*row.measured_s) : "-", error});
  }
  return table;
}

PageTable ChoicesTable(std::span<const ForecastRow> rows) {
  PageTable table{
      .title = "How gradients are summed",
      .header = {"ranks", "algorithm", "bucket", "best algorithm", "best bucket", "best step"}};
  for (const ForecastRow& row : rows) {
    if (row.ranks == 1) continue;
    table.rows.push_back({std::to_string(row.ranks), row.choice.algorithm,
                          fmt::format("{:g} MB", row.choice.bucket_bytes / 1e6),
                          row.best.choice.algorithm,
                          fmt::format("{:g} MB", row.best.choice.bucket_bytes / 1e6),
                          FormatSeconds(row.best.forecast.step_s)});
  }
  return table;
}

}  // namespace

Page ForecastPage(const StepFit& fit, std::span<const ForecastRow> rows, const std::string& what,
                  const std::string& command) {
  Page page{.title = "What " + what + " would do on more ranks",
            .subtitle = "a model of a step, simulated event by event"};
  Section charts{.title = "Prediction and measurement"};
  charts.blocks = {StepChart(rows), SpeedChart(rows), PartsChart(rows), RowsTable(rows),
                   ChoicesTable(rows)};
  page.sections.push_back(std::move(charts));
  Section how{.title = "Assumptions"};
  for (const std::string& remark : fit.remarks) how.blocks.push_back(Paragraph{remark + "."});
  how.blocks.push_back(Commands{{command}});
  page.sections.push_back(std::move(how));
  return page;
}

Page PublishedPage(const PublishedForecast& forecast, const std::string& command) {
  const std::string axis(forecast.table->axis);
  LineChart chart{.title = fmt::format("Published and predicted time over {}", axis),
                  .x = {.title = axis, .logarithmic = true, .from_zero = false},
                  .y = {.title = "time", .unit = "min"}};
  Curve predicted{.name = "predicted", .kind = CurveKind::kPredicted};
  Curve published{.name = "published", .kind = CurveKind::kPublished};
  PageTable table{.title = "Points",
                  .header = {axis, "predicted", "from", "to", "published", "error", "used"}};
  for (const auto& point : forecast.points) {
    const Predicted& p = point.predicted;
    predicted.x.push_back(point.n);
    predicted.y.push_back(p.seconds / 60);
    predicted.low.push_back(p.low / 60);
    predicted.high.push_back(p.high / 60);
    const bool known = point.published > 0;
    if (known) {
      published.x.push_back(point.n);
      published.y.push_back(point.published / 60);
    }
    table.rows.push_back(
        {fmt::format("{:g}", point.n), FormatClock(p.seconds), FormatClock(p.low),
         FormatClock(p.high), known ? FormatClock(point.published) : "-",
         known ? fmt::format("{:+.1f} %", 100 * (p.seconds / point.published - 1)) : "-",
         point.fitted ? "fitted" : "predicted"});
  }
  chart.curves = {std::move(predicted), std::move(published)};
  chart.caption = "Bars: nine of ten measurements should be inside, if the law holds.";
  Page page{
      .title = std::string(forecast.table->title),
      .subtitle = "a published table, and what a law fitted to part of it predicts for the rest"};
  page.sections.push_back({.title = "Prediction", .blocks = {chart, table}});
  page.sections.push_back(
      {.title = "Assumptions",
       .blocks = {Paragraph{forecast.assumes},
                  Paragraph{"Source: " + std::string(forecast.table->source) + "."},
                  Commands{{command}}}});
  return page;
}

}  // namespace trireme
