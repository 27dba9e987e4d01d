#include "report/page/run_sections.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "report/plot/ticks.h"

namespace trireme {
namespace {

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
  PageTable table{"Clients of " + run.name,
                  {"client", "updates", "samples", "refused", "removed", "waited, s",
                   "mean staleness", "largest staleness"},
                  {},
                  ""};
  const Json* clients = run.data->summary ? run.data->summary->Find("clients") : nullptr;
  if (!clients || !clients->IsArray()) return table;
  for (const Json& client : clients->Items()) {
    if (!client.IsObject()) continue;
    std::vector<std::string> row;
    for (const char* key : {"name", "updates", "samples", "refused", "removed", "waited_seconds",
                            "staleness_mean", "staleness_max"}) {
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

Section StalenessSection(std::span<const NamedRun> runs) {
  Section section{"Staleness", {}};
  LineChart chart{"Staleness of updates",
                  {"others' updates that an update had not seen", ""},
                  {"share of updates", "%"},
                  {},
                  "The last point also counts all staler updates.",
                  runs.size() < kManyRuns};
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
    curve.style = run.style;
    if (curve.style >= kOtherStyles) curve.kind = CurveKind::kOther;
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
