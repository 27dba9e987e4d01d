#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/machine.h"
#include "base/text.h"
#include "base/version.h"
#include "data/csv_field.h"
#include "study/sweep_table.h"
#include "study/tune.h"

namespace trireme {
namespace {

// A number of a run for a column.
struct Column {
  const char* title;
  const char* name;  // in CSV and JSON
  std::optional<double> SweepRun::*number;
  bool share;
};
constexpr Column kColumns[] = {
    {"validation accuracy", "validation_accuracy", &SweepRun::validation_accuracy, true},
    {"validation RMSE", "validation_rmse", &SweepRun::validation_rmse, false},
    {"test accuracy", "test_accuracy", &SweepRun::test_accuracy, true},
    {"test RMSE", "test_rmse", &SweepRun::test_rmse, false},
    {"test loss", "test_loss", &SweepRun::test_loss, false},
};

// Those that some run has.
std::vector<Column> ColumnsOf(const TuneResult& result) {
  std::vector<Column> columns;
  for (const Column& column : kColumns) {
    if (std::ranges::any_of(result.trials, [&](const Trial& trial) {
          return (trial.run.*column.number).has_value();
        })) {
      columns.push_back(column);
    }
  }
  return columns;
}

std::string LengthOf(const Recipe& recipe) {
  if (recipe.trainer.steps > 0) return FormatCount(recipe.trainer.steps);
  return fmt::format("{:g}", recipe.trainer.epochs);
}

std::vector<std::vector<std::string>> LinesOf(const TunePlan& plan, const TuneResult& result) {
  const std::vector<Column> columns = ColumnsOf(result);
  std::vector<std::vector<std::string>> lines(1);
  lines[0].emplace_back("trial");
  for (const SearchKey& key : plan.keys) lines[0].push_back(key.key);
  if (plan.halving) lines[0].emplace_back(plan.recipe.trainer.steps > 0 ? "steps" : "epochs");
  for (const Column& column : columns) lines[0].emplace_back(column.title);
  for (const Trial& trial : result.trials) {
    std::vector<std::string>& line = lines.emplace_back();
    line.push_back(fmt::format("{}", trial.number));
    line.insert(line.end(), trial.values.begin(), trial.values.end());
    if (plan.halving) line.push_back(LengthOf(trial.recipe));
    if (!trial.run.error.empty()) {
      line.push_back("failed: " + trial.run.error);
      continue;
    }
    for (const Column& column : columns) {
      const std::optional<double>& number = trial.run.*column.number;
      line.push_back(!number        ? "-"
                     : column.share ? fmt::format("{:.2f} %", 100 * *number)
                                    : FormatLoss(*number));
    }
  }
  return lines;
}

std::string JudgeText(const TuneResult& result) {
  const bool numbers = std::ranges::any_of(
      result.trials, [](const Trial& trial) { return trial.run.test_rmse.has_value(); });
  return fmt::format("{} {} {}", numbers ? "lowest" : "highest",
                     result.validated ? "validation" : "test", numbers ? "RMSE" : "accuracy");
}

LineChart KeyChart(const TuneResult& result, const SearchKey& key, size_t k) {
  LineChart chart{.title = "Trials over " + key.key,
                  .x = {.title = key.key, .logarithmic = key.logarithmic, .from_zero = false}};
  std::vector<std::pair<double, double>> points;
  for (const Trial& trial : result.trials) {
    const auto merit = MeritOf(trial.run);
    if (merit) points.push_back({*ParseNumber<double>(trial.values[k]), *merit});
  }
  std::ranges::sort(points);
  const bool numbers = !points.empty() && points[0].second < 0;
  chart.y = numbers ? Axis{.title = "RMSE", .from_zero = false}
                    : Axis{.title = "accuracy", .unit = "%", .from_zero = false};
  Curve curve{.name = result.validated ? "validation" : "test"};
  for (const auto& [x, merit] : points) {
    curve.x.push_back(x);
    curve.y.push_back(numbers ? -merit : 100 * merit);
  }
  chart.curves.push_back(std::move(curve));
  return chart;
}

}  // namespace

std::string TuneText(const TunePlan& plan, const TuneResult& result) {
  if (result.trials.empty()) return "";
  std::vector<std::vector<std::string>> lines = LinesOf(plan, result);
  if (result.best) lines[*result.best + 1].emplace_back("best");
  return AlignedText(lines);
}

std::string TuneCsv(const TunePlan& plan, const TuneResult& result) {
  const std::vector<Column> columns = ColumnsOf(result);
  std::string text = "trial";
  for (const SearchKey& key : plan.keys) text += "," + key.key;
  text += ",rung";
  for (const Column& column : columns) text += fmt::format(",{}", column.name);
  text += ",error\n";
  for (const Trial& trial : result.trials) {
    text += fmt::format("{}", trial.number);
    for (const std::string& value : trial.values) text += "," + CsvField(value);
    text += fmt::format(",{}", trial.rung);
    for (const Column& column : columns) {
      const std::optional<double>& number = trial.run.*column.number;
      text += number ? fmt::format(",{:.6g}", *number) : ",";
    }
    text += "," + CsvField(trial.run.error) + "\n";
  }
  return text;
}

Json TuneJson(const TunePlan& plan, const TuneResult& result) {
  Json trials = Json::Array();
  for (const Trial& trial : result.trials) {
    Json values = Json::Object(), entry = Json::Object();
    for (size_t k = 0; k < plan.keys.size(); ++k) values.Add(plan.keys[k].key, trial.values[k]);
    entry.Add("trial", trial.number).Add("values", std::move(values)).Add("rung", trial.rung);
    entry.Add("run", trial.run.folder);
    if (!trial.run.error.empty()) entry.Add("error", trial.run.error);
    for (const Column& column : ColumnsOf(result)) {
      const std::optional<double>& number = trial.run.*column.number;
      if (trial.run.error.empty()) entry.Add(column.name, number ? Json(*number) : Json());
    }
    trials.Append(std::move(entry));
  }
  Json json = Json::Object();
  json.Add("what", "tune").Add("recipe", plan.name).Add("version", Version());
  json.Add("range", RangeJson(result.range)).Add("trials", std::move(trials));
  json.Add("best", result.best ? Json(result.trials[*result.best].number) : Json());
  json.Add("decides", result.validated ? "validation" : "test");
  return json;
}

Page TunePage(const TunePlan& plan, const TuneResult& result, const std::string& command) {
  Page page{.title = "Settings for " + plan.name};
  std::vector<std::string> keys;
  for (const SearchKey& key : plan.keys) keys.push_back(key.key + " = " + key.text);
  page.subtitle = plan.keys.empty()
                      ? "Range test of the learning rate"
                      : fmt::format("{}; {}", fmt::join(keys, "; "), Counted(plan.trials, "trial"));
  Section trials{.title = "Trials"};
  if (!result.trials.empty()) {
    auto lines = LinesOf(plan, result);
    PageTable table{.title = "All trials", .header = lines[0], .sortable = true};
    for (size_t i = 1; i < lines.size(); ++i) {
      lines[i].resize(std::max(lines[i].size(), table.header.size()), "-");
      if (result.best == i - 1) {
        for (size_t c = 0; c < lines[i].size(); ++c) table.bold.push_back({i - 1, c});
      }
      table.rows.push_back(std::move(lines[i]));
    }
    table.caption = fmt::format("Best: the {}{}.", JudgeText(result),
                                plan.halving ? " of those that trained longest" : "");
    trials.blocks.push_back(std::move(table));
    for (size_t k = 0; k < plan.keys.size(); ++k) {
      if (plan.keys[k].values.empty()) {
        trials.blocks.push_back(KeyChart(result, plan.keys[k], k));
      }
    }
    page.sections.push_back(std::move(trials));
  }
  page.sections.push_back(
      {"Learning rate",
       {RangeChart(result.range), Paragraph{"A short run whose rate grows from step to step: " +
                                            RangeText(result.range, plan.recipe) + "."}}});
  const Machine machine = ReadMachine();
  page.sections.push_back(
      {"How",
       {Paragraph{fmt::format("trireme {} on {} ({}, {}).", Version(), machine.host,
                              machine.cpu_model.empty() ? machine.architecture : machine.cpu_model,
                              machine.kernel)},
        Commands{{command, ShellLine(std::vector<std::string>{"trireme", "train",
                                                              plan.out + "/best.toml"})}}}});
  return page;
}

}  // namespace trireme
