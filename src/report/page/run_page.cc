#include "report/page/run_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "report/page/run_curves.h"
#include "report/page/run_facts.h"
#include "report/page/run_sections.h"
#include "report/page/run_settings.h"
#include "report/plot/ticks.h"

namespace trireme {
namespace {

constexpr size_t kMostColoured = 7;
constexpr size_t kMostProblems = 12;

// Runs of the same name are told apart by their paths.
std::vector<NamedRun> NameRuns(std::span<const RunData> runs) {
  std::map<std::string, int> seen;
  for (const RunData& run : runs) ++seen[run.name];
  std::vector<NamedRun> named;
  for (const RunData& run : runs) {
    named.push_back({seen[run.name] > 1 ? run.path : run.name, &run, int(named.size())});
  }
  if (runs.size() < kManyRuns) return named;
  // The best come first and have the colours that can be told apart.
  std::stable_sort(named.begin(), named.end(), [](const NamedRun& a, const NamedRun& b) {
    const double left = TestScoreOf(*a.data), right = TestScoreOf(*b.data);
    return std::isnan(right) ? !std::isnan(left) : left > right;
  });
  for (size_t i = 0; i < named.size(); ++i) {
    named[i].style = int(i) + (i < kMostColoured ? 0 : kOtherStyles);
  }
  return named;
}

std::string StateSentence(const std::string& who, const RunData& run) {
  if (run.epochs.empty() && run.steps.empty()) {
    return fmt::format("{} has not written any metrics ({}).", who, StateText(run.state));
  }
  const auto& last = run.steps.size() > 1 ? run.steps.back()
                     : run.epochs.empty() ? run.steps.back()
                                          : run.epochs.back();
  return fmt::format("{}: {}. Its last line is from step {}.", who, StateText(run.state),
                     ValueText(last.step));
}

// Of many runs the table says in which state they are.
void AddRemarks(std::span<const NamedRun> runs, RunsPageState state, Section& section) {
  std::vector<std::string> remarks;
  for (const NamedRun& run : runs) {
    const std::string who = runs.size() == 1 ? "The run" : run.name;
    const bool empty = run.data->epochs.empty() && run.data->steps.empty();
    const bool unfinished = state == RunsPageState::kSaid && runs.size() < kManyRuns &&
                            run.data->state.kind != RunState::kDone;
    if ((empty && state == RunsPageState::kSaid) || unfinished)
      remarks.push_back(StateSentence(who, *run.data));
    for (const std::string& problem : run.data->problems) {
      remarks.push_back(fmt::format("{}: {}", run.name, problem));
    }
  }
  for (size_t i = 0; i < std::min(remarks.size(), kMostProblems); ++i) {
    section.blocks.push_back(Paragraph{remarks[i]});
  }
  if (remarks.size() > kMostProblems) {
    section.blocks.push_back(
        Paragraph{fmt::format("And {} more remarks like these.", remarks.size() - kMostProblems)});
  }
}

Section ResultSection(std::span<const NamedRun> runs, RunsPageState state) {
  const bool many = runs.size() >= kManyRuns;
  Section section{many ? "Runs" : "Result", {}};
  AddRemarks(runs, state, section);
  Figures figures = HeadFigures(runs);
  if (!figures.figures.empty()) section.blocks.push_back(std::move(figures));
  PageTable table = many ? RowsOfRuns(runs) : ResultTable(runs);
  if (!table.rows.empty()) section.blocks.push_back(std::move(table));
  return section;
}

Section SettingsSection(std::span<const NamedRun> runs) {
  Section section{"Settings", {}};
  const bool many = runs.size() >= kManyRuns;
  if (runs.size() > 1 && !many) {  // of many they are columns
    PageTable table = SettingsTable(runs, WhichSettings::kDifferent);
    table.title = "What differs";
    if (table.rows.empty()) {
      section.blocks.push_back(Paragraph{"The runs have the same settings."});
    } else {
      section.blocks.push_back(std::move(table));
    }
  }
  PageTable table = SettingsTable(runs, many ? WhichSettings::kSame : WhichSettings::kAll);
  table.title = many ? fmt::format("{} settings that all runs share", table.rows.size())
                     : fmt::format("All {} settings", table.rows.size());
  table.folded = true;
  if (!table.rows.empty()) section.blocks.push_back(std::move(table));
  return section;
}

Section RepeatSection(std::span<const NamedRun> runs) {
  Section section{"Machine, versions, and how to repeat it", {}};
  PageTable table = MachineTable(runs);
  if (!table.rows.empty() && runs.size() < kManyRuns) section.blocks.push_back(std::move(table));
  Commands commands;
  for (const NamedRun& run : runs) {
    for (const Json& start : run.data->starts) {
      const std::string line = Said(start, "command");
      if (!line.empty())
        commands.lines.push_back(fmt::format("# {} was started with: {}", run.name, line));
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
    const std::string model = run.data->Setting("model.name");
    const std::string source = run.data->Setting("data.source");
    if (runs.size() >= kManyRuns) break;
    if (!page.subtitle.empty() && runs.size() > 1) page.subtitle += "; ";
    page.subtitle += runs.size() == 1 ? fmt::format("model {}, data {}", model, source) : run.name;
  }
  const bool many = runs.size() >= kManyRuns;
  const auto add = [&](Section section, bool folded = false) {
    section.folded = folded;
    if (!section.blocks.empty()) page.sections.push_back(std::move(section));
  };
  Section result = ResultSection(named, state);
  const auto times = TimeCharts(named);
  if (!many) result.blocks.insert(result.blocks.end(), times.begin(), times.end());
  add(std::move(result));
  add({"Learning", LearningCharts(named)});
  add({"Speed", SpeedCharts(named)});
  if (many) add({"Where the time went", times}, true);
  add(StalenessSection(named), many);
  add(ClassSection(named), many);
  add(MistakeSection(named));
  add(SettingsSection(named));
  add(RepeatSection(named), many);
  return page;
}

}  // namespace trireme
