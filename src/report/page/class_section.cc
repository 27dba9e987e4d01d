// What the summaries say of single classes. They are untrusted: what is damaged is left out.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "record/class_report.h"
#include "report/page/run_sections.h"
#include "report/plot/ticks.h"

namespace trireme {
namespace {

constexpr size_t kMostCharts = 4;  // of a kind: one for each run
constexpr size_t kMostCurves = 7;  // more cannot be told apart by their markers

// The member of that name if it is a list; null otherwise.
const std::vector<Json>* ListIn(const Json& json, std::string_view key) {
  const Json* found = json.Find(key);
  return found && found->IsArray() ? &found->Items() : nullptr;
}

// Not a number where there is none.
double NumberOf(const Json& json) {
  try {
    return json.IsNull() ? NAN : json.AsDouble();
  } catch (const Error&) {
    return NAN;
  }
}

std::vector<double> NumbersIn(const Json& json, std::string_view key) {
  std::vector<double> numbers;
  if (const auto* items = ListIn(json, key)) {
    for (const Json& item : *items) numbers.push_back(NumberOf(item));
  }
  return numbers;
}

struct ClassData {
  std::vector<std::string> names;
  Confusion confusion;                    // square; empty: not there
  std::vector<double> auc;                // of each class, or empty
  std::vector<std::vector<double>> x, y;  // ROC curves, in per cent; of each class, or empty
  double auc_error = 0;

  size_t size() const { return confusion.size(); }
};

Confusion ConfusionIn(const Json& summary) {
  Confusion confusion;
  const auto* rows = ListIn(summary, "confusion");
  if (!rows) return {};
  for (const Json& row : *rows) {
    if (!row.IsArray() || row.Items().size() != rows->size()) return {};
    confusion.emplace_back();
    for (const Json& cell : row.Items()) {
      if (!cell.IsInt() || cell.AsInt() < 0) return {};
      confusion.back().push_back(cell.AsInt());
    }
  }
  return confusion;
}

void ReadCurves(const Json& summary, ClassData& data) {
  const Json* roc = summary.Find("roc");
  const auto* curves = roc && roc->IsObject() ? ListIn(*roc, "curves") : nullptr;
  if (!curves || curves->size() != data.size()) return;
  for (const Json& curve : *curves) {
    if (!curve.IsObject()) continue;
    data.x.push_back(NumbersIn(curve, "false_positive_rate"));
    data.y.push_back(NumbersIn(curve, "true_positive_rate"));
    for (double& value : data.x.back()) value *= 100;
    for (double& value : data.y.back()) value *= 100;
    if (data.x.back().size() == data.y.back().size() &&
        std::is_sorted(data.x.back().begin(), data.x.back().end())) {
      continue;
    }
    data.x.back().clear();
    data.y.back().clear();
  }
  if (data.x.size() != data.size()) data.x.clear();
}

ClassData ClassesOf(const RunData& run) {
  ClassData data;
  if (!run.summary) return data;
  const Json& summary = *run.summary;
  data.confusion = ConfusionIn(summary);
  const auto* names = ListIn(summary, "classes");
  for (size_t i = 0; i < data.size(); ++i) {
    const bool named = names && i < names->size() && (*names)[i].IsString();
    data.names.push_back(named ? (*names)[i].AsString() : fmt::format("{}", i));
  }
  data.auc = NumbersIn(summary, "per_class_auc");
  if (data.auc.size() != data.size()) data.auc.clear();
  if (const Json* error = summary.Find("auc_error")) data.auc_error = NumberOf(*error);
  if (!data.auc.empty()) ReadCurves(summary, data);
  return data;
}

HeatChart ConfusionChart(const ClassData& data, std::string title) {
  std::vector<std::vector<double>> values;
  for (const auto& row : data.confusion) values.emplace_back(row.begin(), row.end());
  return {std::move(title),
          "true class",
          "predicted class",
          data.names,
          data.names,
          std::move(values),
          "Test samples; the colour shows the square root of the count."};
}

std::string Area(double auc) { return std::isnan(auc) ? "-" : fmt::format("{:.4f}", auc); }

// Of many classes those that are told from the rest worst.
LineChart RocChart(const ClassData& data, std::string title) {
  std::vector<size_t> shown;
  for (size_t c = 0; c < data.x.size(); ++c) {
    if (!data.x[c].empty() && !std::isnan(data.auc[c])) shown.push_back(c);
  }
  const size_t all = shown.size();
  if (all > kMostCurves) {
    std::stable_sort(shown.begin(), shown.end(),
                     [&](size_t a, size_t b) { return data.auc[a] < data.auc[b]; });
    shown.resize(kMostCurves);
    std::sort(shown.begin(), shown.end());
  }
  LineChart chart{std::move(title),
                  {"false positive rate", "%"},
                  {"true positive rate", "%"},
                  {},
                  "Each class against the rest: the share of other classes' samples that are taken "
                  "for it, and the share of its own, at every threshold of its score."};
  if (all > shown.size()) {
    chart.caption +=
        fmt::format(" Shown are the {} of {} classes with the smallest area; the table has all.",
                    shown.size(), all);
  }
  if (data.auc_error > 0) {
    chart.caption +=
        fmt::format(" Areas come from a histogram and are off by at most {:.2g}.", data.auc_error);
  }
  for (const size_t c : shown) {
    chart.curves.push_back({fmt::format("{} (AUC {})", data.names[c], Area(data.auc[c])),
                            CurveKind::kMeasured,
                            data.x[c],
                            data.y[c],
                            {},
                            {}});
  }
  if (!shown.empty()) {
    chart.curves.push_back({"by chance", CurveKind::kIdeal, {0, 100}, {0, 100}, {}, {}});
  }
  return chart;
}

std::string Percent(const std::optional<double>& share) {
  return share ? fmt::format("{:.2f} %", 100 * *share) : "-";
}

double MeanOf(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  return values.empty()
             ? NAN
             : std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

PageTable TableOfOne(const ClassData& data) {
  PageTable table{"Each class", {"class", "test samples", "recall", "precision", "F1"}, {}, ""};
  const auto scores = ScoresOf(data.confusion);
  int64_t samples = 0;
  for (size_t c = 0; c < data.size(); ++c) {
    samples += scores[c].samples;
    table.rows.push_back({data.names[c], ValueText(double(scores[c].samples)),
                          Percent(scores[c].recall), Percent(scores[c].precision),
                          Percent(scores[c].f1)});
  }
  const MacroScore macro = MacroOf(scores);
  table.rows.push_back({"mean over classes", ValueText(double(samples)), Percent(macro.recall),
                        Percent(macro.precision), Percent(macro.f1)});
  if (data.auc.empty()) return table;
  table.header.push_back("AUC");
  for (size_t c = 0; c < data.size(); ++c) table.rows[c].push_back(Area(data.auc[c]));
  table.rows.back().push_back(Area(MeanOf(data.auc)));
  return table;
}

// A column for each run of the same classes as the first.
template <class Cell>
PageTable TableOfAll(std::span<const NamedRun> runs, const std::vector<ClassData>& all,
                     std::string title, Cell cell) {
  PageTable table{std::move(title), {"class", "test samples"}, {}, ""};
  const ClassData* first = nullptr;
  for (size_t r = 0; r < runs.size(); ++r) {
    const ClassData& data = all[r];
    if (data.size() == 0) continue;
    const auto scores = ScoresOf(data.confusion);
    if (!first) {
      first = &data;
      for (size_t c = 0; c < data.size(); ++c) {
        table.rows.push_back({data.names[c], ValueText(double(scores[c].samples))});
      }
    }
    if (data.names != first->names) continue;  // of other data
    table.header.push_back(runs[r].name);
    for (size_t c = 0; c < data.size(); ++c) table.rows[c].push_back(cell(data, scores[c], c));
  }
  return table;
}

// Many runs are rows.
PageTable Turned(const PageTable& table) {
  PageTable turned{table.title, {"run"}, {}, table.caption};
  turned.sortable = true;
  for (const auto& row : table.rows) turned.header.push_back(row[0]);
  for (size_t c = 2; c < table.header.size(); ++c) {
    turned.rows.push_back({table.header[c]});
    for (const auto& row : table.rows) turned.rows.back().push_back(row[c]);
  }
  return turned;
}

}  // namespace

Section ClassSection(std::span<const NamedRun> runs) {
  Section section{"Classes", {}};
  std::vector<ClassData> all;
  for (const NamedRun& run : runs) all.push_back(ClassesOf(*run.data));
  const auto title = [&](const char* what, size_t r) {
    return runs.size() == 1 ? std::string(what) : fmt::format("{} of {}", what, runs[r].name);
  };
  for (size_t r = 0; r < runs.size() && section.blocks.size() < kMostCharts; ++r) {
    if (all[r].size() == 0) continue;
    section.blocks.push_back(ConfusionChart(all[r], title("Confusion", r)));
  }
  size_t charts = 0;
  for (size_t r = 0; r < runs.size() && charts < kMostCharts; ++r) {
    LineChart chart = RocChart(all[r], title("ROC curves", r));
    if (chart.curves.empty()) continue;
    section.blocks.push_back(std::move(chart));
    ++charts;
  }
  const auto add = [&](PageTable table) {
    if (table.rows.empty()) return;
    section.blocks.push_back(runs.size() < kManyRuns ? std::move(table) : Turned(table));
  };
  if (runs.size() == 1 && all[0].size() > 0) add(TableOfOne(all[0]));
  if (runs.size() == 1) return section;
  add(TableOfAll(
      runs, all, "Recall of each class",
      [](const ClassData&, const ClassScore& score, size_t) { return Percent(score.recall); }));
  if (charts == 0) return section;
  add(TableOfAll(runs, all, "AUC of each class",
                 [](const ClassData& data, const ClassScore&, size_t c) {
                   return data.auc.empty() ? std::string("-") : Area(data.auc[c]);
                 }));
  return section;
}

}  // namespace trireme
