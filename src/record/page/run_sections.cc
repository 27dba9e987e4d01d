#include "record/page/run_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "record/plot/ticks.h"

namespace trireme {
namespace {

constexpr size_t kMostMatrices = 4;

// The matrix of the summary; nothing where it is damaged.
std::vector<std::vector<double>> ConfusionOf(const RunData& run) {
  std::vector<std::vector<double>> rows;
  const Json* json = run.summary ? run.summary->Find("confusion") : nullptr;
  if (!json || !json->IsArray()) return {};
  for (const Json& row : json->Items()) {
    if (!row.IsArray() || row.Items().size() != json->Items().size()) return {};
    rows.emplace_back();
    for (const Json& cell : row.Items())
      rows.back().push_back(cell.IsInt() ? double(cell.AsInt()) : NAN);
  }
  return rows;
}

std::vector<std::string> ClassesOf(const RunData& run, size_t count) {
  std::vector<std::string> names;
  const Json* json = run.summary ? run.summary->Find("classes") : nullptr;
  for (size_t i = 0; i < count; ++i) {
    const bool named =
        json && json->IsArray() && i < json->Items().size() && json->Items()[i].IsString();
    names.push_back(named ? json->Items()[i].AsString() : fmt::format("{}", i));
  }
  return names;
}

PageTable ClassTable(std::span<const NamedRun> runs) {
  PageTable table{"Each class", {"class", "test samples"}, {}, ""};
  std::vector<std::string> classes;
  for (const NamedRun& run : runs) {
    const auto matrix = ConfusionOf(*run.data);
    const auto names = ClassesOf(*run.data, matrix.size());
    if (matrix.empty()) continue;
    if (classes.empty()) {
      classes = names;
      for (size_t c = 0; c < classes.size(); ++c) {
        double samples = 0;
        for (const double count : matrix[c]) samples += count;
        table.rows.push_back({classes[c], ValueText(samples)});
      }
    }
    if (names != classes) continue;  // of other data
    table.header.push_back(runs.size() == 1 ? "recognised" : run.name);
    if (runs.size() == 1) table.header.push_back("precision");
    for (size_t c = 0; c < classes.size(); ++c) {
      double samples = 0, predicted = 0;
      for (size_t other = 0; other < classes.size(); ++other) {
        samples += matrix[c][other];
        predicted += matrix[other][c];
      }
      const auto share = [](double part, double of) {
        return of > 0 ? fmt::format("{:.2f} %", 100 * part / of) : "-";
      };
      table.rows[c].push_back(share(matrix[c][c], samples));
      if (runs.size() == 1) table.rows[c].push_back(share(matrix[c][c], predicted));
    }
  }
  return table;
}

std::vector<double> StalenessOf(const Json& json) {
  std::vector<double> counts;
  const Json* list = json.Find("staleness");
  if (!list || !list->IsArray()) return counts;
  for (const Json& count : list->Items())
    counts.push_back(count.IsInt() ? double(count.AsInt()) : NAN);
  while (!counts.empty() && !(counts.back() > 0)) counts.pop_back();
  return counts;
}

PageTable ClientTable(const NamedRun& run) {
  PageTable table{
      "Clients of " + run.name,
      {"client", "updates", "samples", "refused", "removed", "mean staleness", "largest staleness"},
      {},
      ""};
  const Json* clients = run.data->summary ? run.data->summary->Find("clients") : nullptr;
  if (!clients || !clients->IsArray()) return table;
  for (const Json& client : clients->Items()) {
    if (!client.IsObject()) continue;
    std::vector<std::string> row;
    for (const char* key :
         {"name", "updates", "samples", "refused", "removed", "staleness_mean", "staleness_max"}) {
      row.push_back(Said(client, key));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

std::string Said(const Json& json, std::string_view key) {
  const Json* found = json.Find(key);
  if (!found || found->IsNull()) return "";
  if (found->IsString()) return found->AsString();
  try {
    return ValueText(found->AsDouble());
  } catch (const Error&) {
    return found->Text().substr(0, 80);
  }
}

Section ClassSection(std::span<const NamedRun> runs) {
  Section section{"Classes", {}};
  for (const NamedRun& run : runs) {
    auto matrix = ConfusionOf(*run.data);
    if (matrix.empty() || section.blocks.size() == kMostMatrices) continue;
    const auto names = ClassesOf(*run.data, matrix.size());
    const std::string title = runs.size() == 1 ? "Confusion" : "Confusion of " + run.name;
    section.blocks.push_back(HeatChart{title, "true class", "predicted class", names, names,
                                       std::move(matrix),
                                       "Test samples; the colour is the root of the count."});
  }
  PageTable table = ClassTable(runs);
  if (!table.rows.empty()) section.blocks.push_back(std::move(table));
  return section;
}

Section StalenessSection(std::span<const NamedRun> runs) {
  Section section{"Staleness", {}};
  LineChart chart{"Staleness of updates",
                  {"others' updates that one had not seen", ""},
                  {"share of updates", "%"},
                  {},
                  "The last point counts all that were staler, too."};
  for (const NamedRun& run : runs) {
    if (!run.data->summary) continue;
    const auto counts = StalenessOf(*run.data->summary);
    double all = 0;
    for (const double count : counts) all += std::isnan(count) ? 0 : count;
    if (!(all > 0)) continue;
    Curve curve{run.name, CurveKind::kMeasured, {}, {}, {}, {}};
    for (size_t i = 0; i < counts.size(); ++i) {
      curve.x.push_back(double(i));
      curve.y.push_back(100 * counts[i] / all);
    }
    curve.style = int(&run - runs.data());
    chart.curves.push_back(std::move(curve));
  }
  if (!chart.curves.empty()) section.blocks.push_back(std::move(chart));
  for (const NamedRun& run : runs) {
    PageTable table = ClientTable(run);
    if (!table.rows.empty()) section.blocks.push_back(std::move(table));
  }
  return section;
}

}  // namespace trireme
