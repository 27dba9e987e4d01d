#include "cli/run_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/terminal.h"
#include "base/text.h"
#include "record/progress_text.h"
#include "report/plot/ticks.h"
#include "report/run_reader.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

bool IsRun(const std::string& folder) {
  std::error_code error;  // what cannot be looked at is none
  return fs::is_regular_file(folder + "/config.toml", error) ||
         fs::is_regular_file(folder + "/metrics.jsonl", error);
}

std::vector<std::string> FoldersIn(const std::string& folder) {
  std::vector<std::string> folders;
  std::error_code error;  // a folder that may not be read holds nothing
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_directory(error)) folders.push_back(entry.path().string());
  }
  return folders;
}

// "2026-01-31T10:44:00.123Z", with or without the fraction, or with another zone.
std::optional<std::time_t> ParseTime(const std::string& text) {
  std::tm time{};
  const char* rest = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
  if (!rest) return {};
  if (*rest == '.') rest += 1 + std::strspn(rest + 1, "0123456789");
  std::tm zone{};
  if (*rest && !strptime(rest, "%z", &zone)) return {};
  return timegm(&time) - zone.tm_gmtoff;
}

std::optional<double> NumberIn(const Json& json, std::string_view key) {
  const Json* found = json.Find(key);
  try {
    return found && !found->IsNull() ? std::optional(found->AsDouble()) : std::nullopt;
  } catch (const Error&) {
    return {};
  }
}

void ReadAccuracy(const RunData& run, ListedRun& row) {
  for (const MetricsLine& line : run.epochs) {
    if (!std::isfinite(line.test_accuracy)) continue;
    row.accuracy = line.test_accuracy;
    row.best = std::max(row.best.value_or(0), line.test_accuracy);
  }
  for (const MetricsLine& line : run.epochs) {
    if (!std::isfinite(line.test_rmse)) continue;
    row.rmse = line.test_rmse;
    row.best_rmse = std::min(row.best_rmse.value_or(line.test_rmse), line.test_rmse);
  }
  if (!run.summary) return;
  if (const auto last = NumberIn(*run.summary, "test_rmse")) row.rmse = last;
  if (const auto best = NumberIn(*run.summary, "best_rmse")) row.best_rmse = best;
  if (row.rmse) row.best_rmse = std::min(row.best_rmse.value_or(*row.rmse), *row.rmse);
  if (const auto last = NumberIn(*run.summary, "test_accuracy")) row.accuracy = last;
  if (const auto best = NumberIn(*run.summary, "best_accuracy")) row.best = best;
  if (row.accuracy) row.best = std::max(row.best.value_or(0), *row.accuracy);
}

ListedRun ReadRow(const std::string& folder) {
  const RunData run = ReadRun(folder);
  ListedRun row{.path = folder, .state = StateText(run.state)};
  row.started = std::time_t(run.news_at);
  if (!run.starts.empty()) {
    const Json* said = run.starts.back().Find("started_at");
    const auto at = said && said->IsString() ? ParseTime(said->AsString()) : std::nullopt;
    row.started = at.value_or(row.started);
  }
  row.data = run.Setting("data.source");
  row.model = run.Setting("model.name");
  row.strategy = run.Setting("strategy.name");
  row.ranks = ParseNumber<int>(run.Setting("transport.ranks")).value_or(1);
  if (!run.epochs.empty() && std::isfinite(run.epochs.back().epoch)) {
    row.epochs = run.epochs.back().epoch;
  }
  ReadAccuracy(run, row);
  return row;
}

// Runs lie in a study's folder, or in its folder `runs`.
std::vector<std::string> RunsOfStudy(const std::string& folder) {
  std::vector<std::string> runs;
  for (const std::string& where : {folder, folder + "/runs"}) {
    for (const std::string& inside : FoldersIn(where)) {
      if (IsRun(inside)) runs.push_back(inside);
    }
  }
  return runs;
}

// Of runs that differ in a word: how many others there are.
void KeepIfEqual(std::string& word, const std::string& other) {
  if (word != other) word = "several";
}

void KeepLower(std::optional<double>& number, const std::optional<double>& other) {
  if (other && (!number || *other < *number)) number = other;
}

ListedRun StudyRow(const std::string& folder, const std::vector<std::string>& runs) {
  ListedRun row = ReadRow(runs[0]);
  int over = 0;
  for (const std::string& path : runs) {
    const ListedRun one = ReadRow(path);
    KeepIfEqual(row.data, one.data);
    KeepIfEqual(row.model, one.model);
    KeepIfEqual(row.strategy, one.strategy);
    row.started = std::max(row.started, one.started);
    row.ranks = one.ranks == row.ranks ? row.ranks : 0;
    row.epochs = std::max(row.epochs, one.epochs);
    if (one.accuracy > row.accuracy) row.accuracy = one.accuracy;
    if (one.best > row.best) row.best = one.best;
    KeepLower(row.rmse, one.rmse);
    KeepLower(row.best_rmse, one.best_rmse);
    over += one.state.starts_with("done");
  }
  row.path = folder;
  row.runs = int(runs.size());
  row.state = fmt::format("{} of {} runs done", over, runs.size());
  return row;
}

std::string Percent(const std::optional<double>& share) {
  return share ? fmt::format("{:.2f} %", 100 * *share) : "-";
}

std::string ResultText(const std::optional<double>& accuracy, const std::optional<double>& rmse) {
  return rmse ? RmseText(*rmse) : Percent(accuracy);
}

std::string DateText(std::time_t time) {
  std::tm local{};
  localtime_r(&time, &local);
  char text[32];
  return std::string(text, std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &local));
}

// Paths are long, and their ends tell more.
std::string Shortened(const std::string& text, size_t most) {
  if (Columns(text) <= most) return text;
  const size_t head = Columns(text) - most + 3;
  return "..." + text.substr(FirstColumns(text, head).size());
}

std::string StrategyText(const ListedRun& run) {
  if (run.ranks == 1) return run.strategy;
  return fmt::format("{} x {}", run.strategy, run.ranks ? fmt::format("{}", run.ranks) : "several");
}

}  // namespace

std::vector<ListedRun> FindRuns(const std::string& folder) {
  if (!Exists(folder)) {
    throw UsageError("{}: does not exist; name a folder that holds runs", folder);
  }
  std::vector<ListedRun> rows;
  if (IsRun(folder)) rows.push_back(ReadRow(folder));
  const bool study =
      rows.empty() && (Exists(folder + "/plan.json") || Exists(folder + "/page.json"));
  if (study) {
    for (const std::string& run : RunsOfStudy(folder)) rows.push_back(ReadRow(run));
  } else if (rows.empty()) {
    for (const std::string& inside : FoldersIn(folder)) {
      if (IsRun(inside)) {
        rows.push_back(ReadRow(inside));
      } else if (const auto runs = RunsOfStudy(inside); !runs.empty()) {
        rows.push_back(StudyRow(inside, runs));
      }
    }
  }
  std::sort(rows.begin(), rows.end(), [](const ListedRun& a, const ListedRun& b) {
    return a.started != b.started ? a.started > b.started : a.path < b.path;
  });
  return rows;
}

std::string RunTable(const std::vector<ListedRun>& runs, bool coloured) {
  std::vector<std::vector<std::string>> lines{
      {"run", "started", "data", "model", "strategy", "epochs", "accuracy", "best", "state"}};
  for (const ListedRun& run : runs) {
    lines.push_back({Printable(run.path), DateText(run.started), Shortened(Printable(run.data), 24),
                     Shortened(Printable(run.model), 20), StrategyText(run), ValueText(run.epochs),
                     ResultText(run.accuracy, run.rmse), ResultText(run.best, run.best_rmse),
                     run.state});
  }
  std::vector<size_t> widths(lines[0].size());
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], Columns(line[i]));
  }
  std::string text;
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      const std::string pad(widths[i] - Columns(line[i]), ' ');
      const bool number = i >= 5 && i <= 7, last = i + 1 == line.size();
      std::string cell = number ? pad + line[i] : line[i] + (last ? "" : pad);
      if (coloured && last && line[i].starts_with("running")) cell = Inked(cell, Ink::kGreen);
      if (coloured && last && line[i].starts_with("stopped")) cell = Inked(cell, Ink::kYellow);
      if (coloured && &line == &lines[0]) cell = Inked(cell, Ink::kFaint);
      text += cell + (last ? "\n" : "  ");
    }
  }
  return text;
}

Json RunListJson(const std::vector<ListedRun>& runs) {
  const auto number = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json();
  };
  Json list = Json::Array();
  for (const ListedRun& run : runs) {
    Json json = Json::Object();
    json.Add("run", run.path).Add("started", int64_t(run.started)).Add("data", run.data);
    json.Add("model", run.model).Add("strategy", run.strategy).Add("ranks", run.ranks);
    json.Add("epochs", run.epochs).Add("test_accuracy", number(run.accuracy));
    json.Add("best_accuracy", number(run.best)).Add("state", run.state);
    if (run.rmse) json.Add("test_rmse", number(run.rmse)).Add("best_rmse", number(run.best_rmse));
    if (run.runs > 0) json.Add("runs", run.runs);
    list.Append(std::move(json));
  }
  return list;
}

}  // namespace trireme
