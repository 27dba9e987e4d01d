#include "study/sweep_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/version.h"
#include "data/csv_field.h"

namespace trireme {
namespace {

// The one whose counting keys have their first values.
size_t BaseOf(const SweepPlan& plan, const Combination& combination) {
  size_t index = 0;
  for (size_t i = 0; i < plan.vary.size(); ++i) {
    const auto& values = plan.vary[i].values;
    const auto at = std::find(values.begin(), values.end(), combination.values[i]);
    const size_t place = SetsParallelism(plan.vary[i].key) ? 0 : size_t(at - values.begin());
    index = index * values.size() + place;
  }
  return index;
}

void ReadNumbers(SweepNumbers& row) {
  std::vector<double> seconds, rates, accuracies, rmses, losses;
  for (const SweepRun& run : row.runs) {
    if (!run.error.empty()) {
      if (row.error.empty()) row.error = run.error;
      continue;
    }
    seconds.push_back(run.seconds);
    rates.push_back(run.samples_per_second);
    if (run.test_accuracy) accuracies.push_back(*run.test_accuracy);
    if (run.test_rmse) rmses.push_back(*run.test_rmse);
    if (run.test_loss) losses.push_back(*run.test_loss);
  }
  if (!seconds.empty()) row.seconds = SpreadOf(seconds);
  if (!rates.empty()) row.rate = SpreadOf(rates);
  if (!accuracies.empty()) row.accuracy = SpreadOf(accuracies);
  if (!rmses.empty()) row.rmse = SpreadOf(rmses);
  if (!losses.empty()) row.loss = SpreadOf(losses);
}

void Compare(const SweepNumbers& base, SweepNumbers& row) {
  if (!row.rate || !base.rate || base.rate->median <= 0) return;
  const double unit = base.rate->median;
  row.speedup = {row.rate->median / unit, row.rate->low / unit, row.rate->high / unit};
  if (row.parallelism && base.parallelism)
    row.efficiency = row.speedup->median / (*row.parallelism / *base.parallelism);
}

std::string SpeedText(const std::optional<double>& value, const char* format, double scale = 1) {
  return value ? fmt::format(fmt::runtime(format), *value * scale) : "-";
}

std::vector<std::string> CellsOf(const SweepNumbers& row, bool counts) {
  std::vector<std::string> cells = row.combination.values;
  const size_t good = size_t(std::count_if(row.runs.begin(), row.runs.end(),
                                           [](const SweepRun& run) { return run.error.empty(); }));
  cells.push_back(fmt::format("{}", good));
  if (!row.seconds) {
    cells.push_back(row.error.empty() ? "not run" : "failed: " + row.error);
    return cells;
  }
  if (row.rmse) {
    cells.push_back(fmt::format("{:.4g}", row.rmse->median));
  } else {
    cells.push_back(row.accuracy ? fmt::format("{:.2f} %", 100 * row.accuracy->median) : "-");
  }
  cells.push_back(row.loss ? FormatLoss(row.loss->median) : "-");
  cells.push_back(fmt::format("{:.3g}", row.seconds->median));
  cells.push_back(fmt::format("{:.1f} %", 100 * row.seconds->share()));
  cells.push_back(FormatCount(int64_t(std::llround(row.rate->median))));
  if (counts) {
    cells.push_back(row.speedup ? fmt::format("{:.2f}", row.speedup->median) : "-");
    cells.push_back(SpeedText(row.efficiency, "{:.0f} %", 100));
  }
  return cells;
}

std::vector<std::string> Header(const SweepPlan& plan, std::span<const SweepNumbers> rows) {
  std::vector<std::string> header;
  for (const Variation& variation : plan.vary) header.push_back(variation.key);
  header.insert(header.end(), {"runs", PredictsNumbers(rows) ? "RMSE" : "accuracy", "test loss",
                               "training s", "spread", "samples/s"});
  if (CountsAny(plan)) header.insert(header.end(), {"speed-up", "efficiency"});
  return header;
}

std::string RemarkOf(const SweepNumbers& row, bool best) {
  if (best) return "best";
  return row.seconds && !row.error.empty() ? "some failed: " + row.error : "";
}

Json ToJson(const Spread& spread) {
  Json json = Json::Object();
  json.Add("median", spread.median).Add("low", spread.low).Add("high", spread.high);
  return json;
}

Json ToJson(const SweepRun& run) {
  Json json = Json::Object();
  json.Add("run", run.folder);
  if (!run.error.empty()) return std::move(json.Add("error", run.error));
  json.Add("train_seconds", run.seconds).Add("samples_per_second", run.samples_per_second);
  json.Add("test_accuracy", run.test_accuracy ? Json(*run.test_accuracy) : Json());
  if (run.test_rmse) json.Add("test_rmse", *run.test_rmse);
  json.Add("test_loss", run.test_loss ? Json(*run.test_loss) : Json());
  return json;
}

}  // namespace

std::vector<SweepNumbers> NumbersOf(const SweepPlan& plan, std::span<const SweepRow> rows) {
  std::vector<SweepNumbers> all;
  for (const SweepRow& row : rows) {
    all.push_back({.combination = row.combination,
                   .runs = row.runs,
                   .parallelism = ParallelismOf(plan, row.combination)});
    ReadNumbers(all.back());
  }
  if (!CountsAny(plan)) return all;
  for (SweepNumbers& row : all) Compare(all[BaseOf(plan, row.combination)], row);
  return all;
}

bool PredictsNumbers(std::span<const SweepNumbers> rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [](const SweepNumbers& row) { return row.rmse.has_value(); });
}

bool CountsAny(const SweepPlan& plan) {
  return std::any_of(plan.vary.begin(), plan.vary.end(),
                     [](const Variation& v) { return SetsParallelism(v.key); });
}

std::optional<size_t> BestRow(const SweepPlan& plan, std::span<const SweepNumbers> rows) {
  const bool fastest = CountsAny(plan);
  const auto worth = [&](const SweepNumbers& row) -> std::optional<double> {
    if (fastest) return row.seconds ? std::optional(-row.seconds->median) : std::nullopt;
    if (row.rmse) return -row.rmse->median;
    return row.accuracy ? std::optional(row.accuracy->median) : std::nullopt;
  };
  std::optional<size_t> best;
  bool differ = false;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto own = worth(rows[i]);
    if (!own) continue;
    if (!best) {
      best = i;
      continue;
    }
    const double most = *worth(rows[*best]);
    differ = differ || *own != most;
    const bool less_loss = *own == most && rows[i].loss && rows[*best].loss &&
                           rows[i].loss->median < rows[*best].loss->median;
    if (*own > most || (!fastest && less_loss)) best = i;
  }
  return differ ? best : std::nullopt;
}

std::string SweepText(const SweepPlan& plan, std::span<const SweepNumbers> rows) {
  std::vector<std::vector<std::string>> lines{Header(plan, rows)};
  const auto best = BestRow(plan, rows);
  for (const SweepNumbers& row : rows) {
    lines.push_back(CellsOf(row, CountsAny(plan)));
    const std::string remark = RemarkOf(row, best == size_t(&row - rows.data()));
    if (!remark.empty()) lines.back().push_back(remark);
  }
  return AlignedText(lines);
}

std::string AlignedText(const std::vector<std::vector<std::string>>& lines) {
  const size_t columns = lines[0].size();
  std::vector<size_t> widths(columns);
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size() && i < columns; ++i) {
      if (line[i].find("failed") == line[i].npos) widths[i] = std::max(widths[i], line[i].size());
    }
  }
  std::string text;
  for (const auto& line : lines) {
    std::string out;
    for (size_t i = 0; i < line.size(); ++i) {
      out += fmt::format("{}{:>{}}", i ? "  " : "", line[i], i < columns ? widths[i] : 0);
    }
    text += out + "\n";
  }
  return text;
}

std::string SweepCsv(const SweepPlan& plan, std::span<const SweepNumbers> rows) {
  std::string text;
  for (const Variation& variation : plan.vary) text += variation.key + ",";
  const bool numbers = PredictsNumbers(rows);
  text += fmt::format("repetition,train_seconds,samples_per_second,{},test_loss,error\n",
                      numbers ? "test_rmse" : "test_accuracy");
  for (const SweepNumbers& row : rows) {
    for (size_t i = 0; i < row.runs.size(); ++i) {
      const SweepRun& run = row.runs[i];
      for (const std::string& value : row.combination.values) text += CsvField(value) + ",";
      text += fmt::format("{},", i + 1);
      if (run.error.empty()) {
        const auto field = [](const std::optional<double>& value) {
          return value ? fmt::format("{:.6g}", *value) : "";
        };
        text +=
            fmt::format("{:.6g},{:.6g},{},{},\n", run.seconds, run.samples_per_second,
                        field(numbers ? run.test_rmse : run.test_accuracy), field(run.test_loss));
      } else {
        text += ",,,," + CsvField(run.error) + "\n";
      }
    }
  }
  return text;
}

Json SweepJson(const SweepPlan& plan, std::span<const SweepNumbers> rows) {
  Json list = Json::Array();
  for (const SweepNumbers& row : rows) {
    Json values = Json::Object(), runs = Json::Array(), entry = Json::Object();
    for (size_t i = 0; i < plan.vary.size(); ++i) {
      values.Add(plan.vary[i].key, row.combination.values[i]);
    }
    for (const SweepRun& run : row.runs) runs.Append(ToJson(run));
    entry.Add("values", std::move(values)).Add("runs", std::move(runs));
    if (!row.error.empty()) entry.Add("error", row.error);
    if (row.seconds) entry.Add("train_seconds", ToJson(*row.seconds));
    if (row.rate) entry.Add("samples_per_second", ToJson(*row.rate));
    if (row.accuracy) entry.Add("test_accuracy", ToJson(*row.accuracy));
    if (row.rmse) entry.Add("test_rmse", ToJson(*row.rmse));
    if (row.loss) entry.Add("test_loss", ToJson(*row.loss));
    if (row.speedup) entry.Add("speedup", ToJson(*row.speedup));
    if (row.efficiency) entry.Add("efficiency", *row.efficiency);
    list.Append(std::move(entry));
  }
  const Json identity = PlanJson(plan);
  Json json = Json::Object();
  json.Add("what", "sweep").Add("recipe", plan.recipe).Add("settings", plan.settings);
  json.Add("vary", identity.At("vary")).Add("repeat", plan.repeat);
  json.Add("version", Version()).Add("rows", std::move(list));
  return json;
}

PageTable SweepPageTable(const SweepPlan& plan, std::span<const SweepNumbers> rows) {
  PageTable table{.title = "All combinations", .header = Header(plan, rows)};
  table.header.push_back("remark");
  const auto best = BestRow(plan, rows);
  bool remarks = false;
  for (const SweepNumbers& row : rows) {
    const bool is_best = best == size_t(&row - rows.data());
    std::vector<std::string> cells = CellsOf(row, CountsAny(plan));
    std::string remark = RemarkOf(row, is_best);
    if (!row.seconds) {  // the remark stands alone
      remark = cells.back();
      cells.pop_back();
    }
    remarks = remarks || !remark.empty();
    cells.resize(table.header.size() - 1, "-");
    cells.push_back(remark);
    if (is_best) {
      for (size_t c = 0; c < cells.size(); ++c) table.bold.push_back({table.rows.size(), c});
    }
    table.rows.push_back(std::move(cells));
  }
  if (!remarks) {
    table.header.pop_back();
    for (auto& row : table.rows) row.pop_back();
  }
  table.caption =
      "Medians over the runs. Time is the training time of the epochs (train_seconds in "
      "summary.json), without process starts, evaluation and checkpoints. Spread is half the "
      "distance between the slowest and the fastest run.";
  if (best) {
    table.caption += CountsAny(plan)         ? " Best: the shortest training time."
                     : PredictsNumbers(rows) ? " Best: the lowest test RMSE."
                                             : " Best: the highest test accuracy.";
  }
  return table;
}

}  // namespace trireme
