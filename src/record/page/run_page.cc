#include "record/page/run_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "record/page/run_curves.h"
#include "record/page/run_sections.h"
#include "record/plot/ticks.h"

namespace trireme {
namespace {

// Runs of the same name are told apart by their paths.
std::vector<NamedRun> NameRuns(std::span<const RunData> runs) {
  std::map<std::string, int> seen;
  for (const RunData& run : runs) ++seen[run.name];
  std::vector<NamedRun> named;
  for (const RunData& run : runs) {
    named.push_back({seen[run.name] > 1 ? run.path : run.name, &run});
  }
  return named;
}

std::optional<double> SaidNumber(const Json& json, std::string_view key) {
  const Json* found = json.Find(key);
  if (!found || found->IsNull()) return {};
  try {
    return found->AsDouble();
  } catch (const Error&) {
    return {};
  }
}

struct Fact {
  const char* title;
  const char* key;
  enum { kPlain, kShare, kSeconds, kBytes } kind = kPlain;
};

std::string FactText(const Json& summary, const Fact& fact) {
  const auto number = fact.kind == Fact::kPlain ? std::nullopt : SaidNumber(summary, fact.key);
  if (!number) return Said(summary, fact.key);
  if (fact.kind == Fact::kShare) return fmt::format("{:.2f} %", 100 * *number);
  return fact.kind == Fact::kSeconds ? FormatSeconds(*number) : FormatBytes(*number);
}

constexpr Fact kResults[] = {
    {"test accuracy", "test_accuracy", Fact::kShare},
    {"top 5", "test_top5", Fact::kShare},
    {"test loss", "test_loss"},
    {"F1, mean over classes", "macro_f1", Fact::kShare},
    {"AUC, mean over classes", "macro_auc"},
    {"training loss", "train_loss"},
    {"epochs", "epochs"},
    {"steps", "steps"},
    {"training time", "train_seconds", Fact::kSeconds},
    {"whole time", "seconds", Fact::kSeconds},
    {"samples/s", "samples_per_second"},
    {"ranks", "ranks"},
    {"strategy", "strategy"},
    {"transport", "transport"},
    {"updates", "updates"},
    {"mean staleness", "staleness_mean"},
    {"largest staleness", "staleness_max"},
    {"peak memory", "peak_memory_bytes", Fact::kBytes},
};

constexpr Fact kMachine[] = {
    {"machine", "machine"},
    {"device", "device"},
    {"precision", "precision"},
    {"version", "version"},
    {"SHA-256 of the weights", "parameters_sha256"},
};

// Rows of facts, a column per run; rows about which no run says anything are left out.
PageTable FactTable(std::span<const NamedRun> runs, std::span<const Fact> facts) {
  PageTable table;
  table.header = {""};
  for (const NamedRun& run : runs) table.header.push_back(run.name);
  for (const Fact& fact : facts) {
    std::vector<std::string> row{fact.title};
    bool any = false;
    for (const NamedRun& run : runs) {
      std::string text = run.data->summary ? FactText(*run.data->summary, fact) : "";
      if (text.empty() && !run.data->starts.empty()) text = Said(run.data->starts.back(), fact.key);
      any = any || !text.empty();
      row.push_back(text.empty() ? "-" : text);
    }
    if (any) table.rows.push_back(std::move(row));
  }
  return table;
}

Section ResultSection(std::span<const NamedRun> runs, RunsPageState state) {
  Section section{"Result", {}};
  for (const NamedRun& run : runs) {
    const RunData& data = *run.data;
    const std::string who = runs.size() == 1 ? "The run" : run.name;
    if (data.epochs.empty() && data.steps.empty()) {
      section.blocks.push_back(Paragraph{who + " has not written any metrics."});
    } else if (state == RunsPageState::kSaid && data.state.kind != RunState::kDone) {
      const auto& last = data.steps.size() > 1 ? data.steps.back()
                         : data.epochs.empty() ? data.steps.back()
                                               : data.epochs.back();
      section.blocks.push_back(
          Paragraph{fmt::format("{}: {}. Its last line is of step {}.", who, StateText(data.state),
                                ValueText(last.step))});
    }
    for (const std::string& problem : data.problems) {
      section.blocks.push_back(Paragraph{fmt::format("{}: {}", run.name, problem)});
    }
  }
  PageTable table = FactTable(runs, kResults);
  if (!table.rows.empty()) section.blocks.push_back(std::move(table));
  return section;
}

std::string_view Unquoted(std::string_view text) {
  if (text.size() > 1 && text.front() == '"' && text.back() == '"')
    return text.substr(1, text.size() - 2);
  return text;
}

using Settings = std::map<std::string, std::string>;

Settings SettingsOf(const RunData& run) {
  Settings settings;
  for (const TomlEntry& entry : run.config) {
    const std::string key = entry.section.empty() ? entry.key : entry.section + "." + entry.key;
    settings[key] = entry.value.Shown();
  }
  return settings;
}

PageTable SettingsTable(std::span<const NamedRun> runs, bool only_different) {
  PageTable table;
  table.header = {"key"};
  std::vector<Settings> all;
  std::set<std::string> keys;
  for (const NamedRun& run : runs) {
    table.header.push_back(runs.size() == 1 ? "value" : run.name);
    all.push_back(SettingsOf(*run.data));
    for (const auto& [key, value] : all.back()) keys.insert(key);
  }
  for (const std::string& key : keys) {
    std::vector<std::string> row{key};
    bool differs = false;
    for (const Settings& settings : all) {
      const auto found = settings.find(key);
      row.push_back(found == settings.end() ? "-" : found->second);
      differs = differs || row.back() != row[1];
    }
    if (differs || !only_different) table.rows.push_back(std::move(row));
  }
  return table;
}

Section SettingsSection(std::span<const NamedRun> runs) {
  Section section{"Settings", {}};
  if (runs.size() > 1) {
    PageTable table = SettingsTable(runs, true);
    table.title = "What differs";
    if (table.rows.empty()) {
      section.blocks.push_back(Paragraph{"The runs have the same settings."});
    } else {
      section.blocks.push_back(std::move(table));
    }
  }
  PageTable table = SettingsTable(runs, false);
  table.title = fmt::format("All {} settings", table.rows.size());
  table.folded = true;
  if (!table.rows.empty()) section.blocks.push_back(std::move(table));
  return section;
}

Section RepeatSection(std::span<const NamedRun> runs) {
  Section section{"Machine, versions, and how to repeat it", {}};
  PageTable table = FactTable(runs, kMachine);
  if (!table.rows.empty()) section.blocks.push_back(std::move(table));
  Commands commands;
  for (const NamedRun& run : runs) {
    for (const Json& start : run.data->starts) {
      const std::string line = Said(start, "command");
      if (!line.empty())
        commands.lines.push_back(fmt::format("# {} was started by: {}", run.name, line));
    }
    const std::vector<std::string> again{"trireme", "train", run.data->path + "/config.toml",
                                         "--out", run.data->path + "-again"};
    commands.lines.push_back(ShellLine(again));
  }
  std::vector<std::string> report{"trireme", "report"};
  for (const NamedRun& run : runs) report.push_back(run.data->path);
  commands.lines.push_back(ShellLine(report));
  section.blocks.push_back(std::move(commands));
  return section;
}

}  // namespace

Page RunsPage(std::span<const RunData> runs, RunsPageState state) {
  const auto named = NameRuns(runs);
  Page page;
  page.title =
      runs.size() == 1 ? fmt::format("Run {}", named[0].name) : fmt::format("{} runs", runs.size());
  for (const NamedRun& run : named) {
    const Settings settings = SettingsOf(*run.data);
    const auto value = [&](const char* key) {
      const auto found = settings.find(key);
      return found == settings.end() ? std::string() : std::string(Unquoted(found->second));
    };
    const std::string model = value("model.name"), source = value("data.source");
    if (!page.subtitle.empty() && runs.size() > 1) page.subtitle += "; ";
    page.subtitle += runs.size() == 1 ? fmt::format("model {}, data {}", model, source) : run.name;
  }
  const auto add = [&](Section section) {
    if (!section.blocks.empty()) page.sections.push_back(std::move(section));
  };
  Section result = ResultSection(named, state);
  for (Block& block : TimeCharts(named)) result.blocks.push_back(std::move(block));
  add(std::move(result));
  add({"Learning", LearningCharts(named)});
  add({"Speed", SpeedCharts(named)});
  add(StalenessSection(named));
  add(ClassSection(named));
  add(SettingsSection(named));
  add(RepeatSection(named));
  return page;
}

}  // namespace trireme
