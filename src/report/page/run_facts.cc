#include "report/page/run_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "report/page/run_sections.h"
#include "report/page/run_settings.h"
#include "report/plot/ticks.h"

namespace trireme {
namespace {

constexpr size_t kMostSettingColumns = 8;

struct Fact {
  const char* title;
  const char* key;
  enum Kind { kPlain, kShare, kFour, kLoss, kSeconds, kBytes, kHash } kind = kPlain;
  enum Better { kNone, kHigher, kLower } better = kNone;
  bool in_head = false;  // of one run it stands among the large figures
};

double SaidNumber(const Json& json, std::string_view key) {
  const Json* found = json.Find(key);
  try {
    return found && !found->IsNull() ? found->AsDouble() : NAN;
  } catch (const Error&) {
    return NAN;
  }
}

std::string NumberText(double number, Fact::Kind kind) {
  if (std::isnan(number)) return "";
  switch (kind) {
    case Fact::kShare:
      return fmt::format("{:.2f} %", 100 * number);
    case Fact::kFour:
      return fmt::format("{:.4g}", number);
    case Fact::kLoss:
      return FormatLoss(number);
    case Fact::kSeconds:
      return FormatSeconds(number);
    case Fact::kBytes:
      return FormatBytes(number);
    default:
      return ValueText(number);
  }
}

std::string FactText(const Json& summary, const Fact& fact) {
  if (fact.kind == Fact::kHash) return Said(summary, fact.key).substr(0, 8);
  const double number = fact.kind == Fact::kPlain ? NAN : SaidNumber(summary, fact.key);
  return std::isnan(number) ? Said(summary, fact.key) : NumberText(number, fact.kind);
}

constexpr Fact kResults[] = {
    {"test accuracy", "test_accuracy", Fact::kShare, Fact::kHigher, true},
    {"best test accuracy", "best_accuracy", Fact::kShare, Fact::kHigher, true},
    {"test RMSE", "test_rmse", Fact::kFour, Fact::kLower, true},
    {"best test RMSE", "best_rmse", Fact::kFour, Fact::kLower, true},
    {"test MAE", "test_mae", Fact::kFour, Fact::kLower},
    {"test R2", "test_r2", Fact::kFour, Fact::kHigher},
    {"top 5", "test_top5", Fact::kShare, Fact::kHigher},
    {"test loss", "test_loss", Fact::kLoss, Fact::kLower, true},
    {"F1, mean over classes", "macro_f1", Fact::kShare, Fact::kHigher},
    {"AUC, mean over classes", "macro_auc", Fact::kFour, Fact::kHigher},
    {"training loss", "train_loss", Fact::kLoss, Fact::kLower, true},
    {"epochs", "epochs", Fact::kPlain, Fact::kNone, true},
    {"steps", "steps", Fact::kPlain, Fact::kNone, true},
    {"training time", "train_seconds", Fact::kSeconds, Fact::kLower, true},
    {"whole time", "seconds", Fact::kSeconds, Fact::kLower},
    {"samples/s", "samples_per_second", Fact::kPlain, Fact::kHigher, true},
    {"ranks", "ranks"},
    {"strategy", "strategy"},
    {"transport", "transport"},
    {"updates", "updates"},
    {"workers waited", "waited_seconds", Fact::kSeconds, Fact::kLower},
    {"mean staleness", "staleness_mean"},
    {"largest staleness", "staleness_max"},
    {"peak memory", "peak_memory_bytes", Fact::kBytes, Fact::kLower},
    {"memory of the card", "device_memory_bytes", Fact::kBytes, Fact::kLower},
};

constexpr Fact kMachine[] = {
    {"machine", "machine"},
    {"host", "host"},
    {"started", "started_at"},
    {"device", "device"},
    {"card", "device_name"},
    {"precision", "precision"},
    {"loss scale", "loss_scale"},
    {"skipped steps", "skipped_steps"},
    {"version", "version"},
    {"commit", "commit"},
    {"SHA-256 of the weights", "parameters_sha256", Fact::kHash},
};

// The places of the best number; none where all are alike.
std::vector<size_t> BestOf(const std::vector<double>& numbers, Fact::Better better) {
  std::vector<size_t> best;
  double most = -INFINITY, least = INFINITY;
  for (const double number : numbers) {
    if (std::isnan(number)) continue;
    most = std::max(most, number);
    least = std::min(least, number);
  }
  if (better == Fact::kNone || !(most > least)) return best;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == (better == Fact::kHigher ? most : least)) best.push_back(i);
  }
  return best;
}

PageTable FactTable(std::span<const NamedRun> runs, std::span<const Fact> facts) {
  PageTable table;
  table.header = {""};
  for (const NamedRun& run : runs) table.header.push_back(runs.size() == 1 ? "" : run.name);
  for (const Fact& fact : facts) {
    if (fact.in_head && runs.size() == 1) continue;
    std::vector<std::string> row{fact.title};
    std::vector<double> numbers;
    bool any = false;
    for (const NamedRun& run : runs) {
      const auto& summary = run.data->summary;
      std::string text = summary ? FactText(*summary, fact) : "";
      if (text.empty() && !run.data->starts.empty()) text = FactText(run.data->starts.back(), fact);
      numbers.push_back(summary ? SaidNumber(*summary, fact.key) : NAN);
      any = any || !text.empty();
      row.push_back(text.empty() ? "-" : text);
    }
    if (!any) continue;
    for (const size_t i : BestOf(numbers, fact.better)) {
      table.bold.push_back({table.rows.size(), i + 1});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// What a head figure or a row of many runs shows.
struct RunNumbers {
  double accuracy = NAN, loss = NAN, train_loss = NAN, seconds = NAN, rate = NAN, epochs = NAN;
  double best = NAN, best_epoch = NAN, steps = NAN;
  double rmse = NAN, best_rmse = NAN, r2 = NAN;  // where numbers are predicted
};

RunNumbers NumbersOf(const RunData& run) {
  RunNumbers numbers;
  for (const auto* lines : {&run.steps, &run.epochs}) {
    for (const MetricsLine& line : *lines) {
      const auto take = [](double& to, double from) {
        if (std::isfinite(from)) to = from;
      };
      take(numbers.accuracy, line.test_accuracy);
      take(numbers.rmse, line.test_rmse);
      take(numbers.r2, line.test_r2);
      take(numbers.loss, line.test_loss);
      take(numbers.train_loss, line.train_loss);
      take(numbers.seconds, line.time_s);
      take(numbers.rate, line.samples_per_second);
      take(numbers.epochs, line.epoch);
      take(numbers.steps, line.step);
      if (line.test_accuracy > numbers.best || std::isnan(numbers.best)) {
        numbers.best = line.test_accuracy;
        numbers.best_epoch = line.epoch;
      }
      if (line.test_rmse < numbers.best_rmse ||
          (std::isfinite(line.test_rmse) && std::isnan(numbers.best_rmse))) {
        numbers.best_rmse = line.test_rmse;
        numbers.best_epoch = line.epoch;
      }
    }
  }
  if (!run.summary || run.state.kind == RunState::kRunning) return numbers;
  const auto say = [&](double& to, const char* key) {
    if (const double said = SaidNumber(*run.summary, key); std::isfinite(said)) to = said;
  };
  say(numbers.accuracy, "test_accuracy");
  say(numbers.loss, "test_loss");
  say(numbers.train_loss, "train_loss");
  say(numbers.seconds, "train_seconds");
  say(numbers.rate, "samples_per_second");
  say(numbers.epochs, "epochs");
  say(numbers.steps, "steps");
  say(numbers.best, "best_accuracy");
  say(numbers.rmse, "test_rmse");
  say(numbers.r2, "test_r2");
  say(numbers.best_rmse, "best_rmse");
  say(numbers.best_epoch, "best_epoch");
  return numbers;
}

// Plain numbers, so that they can be sorted.
std::string Hundredths(double share) { return fmt::format("{:.2f}", 100 * share); }
std::string FourDigits(double number) { return NumberText(number, Fact::kFour); }
std::string WholeText(double number) { return ValueText(std::round(number)); }

struct RowColumn {
  const char* title;
  double RunNumbers::*value;
  std::string (*text)(double value);
  Fact::Better better;
};

constexpr RowColumn kRowColumns[] = {
    {"test accuracy (%)", &RunNumbers::accuracy, Hundredths, Fact::kHigher},
    {"best (%)", &RunNumbers::best, Hundredths, Fact::kHigher},
    {"test RMSE", &RunNumbers::rmse, FourDigits, Fact::kLower},
    {"test R2", &RunNumbers::r2, FourDigits, Fact::kHigher},
    {"test loss", &RunNumbers::loss, FormatLoss, Fact::kLower},
    {"training loss", &RunNumbers::train_loss, FormatLoss, Fact::kLower},
    {"epochs", &RunNumbers::epochs, ValueText, Fact::kNone},
    {"training time (s)", &RunNumbers::seconds, ValueText, Fact::kLower},
    {"samples/s", &RunNumbers::rate, WholeText, Fact::kHigher},
};

std::string LossOf(double number) { return NumberText(number, Fact::kLoss); }

Figures FiguresOfOne(const RunData& run) {
  const RunNumbers n = NumbersOf(run);
  Figures block;
  const auto add = [&](const std::string& value, const char* title, std::string note) {
    if (!value.empty()) block.figures.push_back({value, title, std::move(note)});
  };
  const bool better_before = n.best > n.accuracy;
  add(NumberText(n.accuracy, Fact::kShare), "test accuracy",
      better_before ? fmt::format("best: {} in epoch {}", NumberText(n.best, Fact::kShare),
                                  ValueText(n.best_epoch))
                    : "");
  const auto best_text = [&](double best) {
    return fmt::format("best: {} in epoch {}", FourDigits(best), ValueText(n.best_epoch));
  };
  add(NumberText(n.rmse, Fact::kFour), "test RMSE",
      n.best_rmse < n.rmse ? best_text(n.best_rmse) : "");
  add(NumberText(n.r2, Fact::kFour), "test R2", "");
  add(LossOf(n.loss), "test loss",
      std::isnan(n.train_loss) ? "" : "on training samples " + LossOf(n.train_loss));
  add(NumberText(n.seconds, Fact::kSeconds), "training time",
      std::isnan(n.epochs) || std::isnan(n.steps)
          ? ""
          : fmt::format("{}, {}", Counted(std::llround(n.epochs), "epoch"),
                        Counted(std::llround(n.steps), "step")));
  const std::string ranks = run.Setting("transport.ranks"), strategy = run.Setting("strategy.name");
  add(std::isnan(n.rate) ? "" : ValueText(std::round(n.rate)), "samples/s",
      ranks.empty() || ranks == "1" ? "" : fmt::format("{} ranks, {}", ranks, strategy));
  return block;
}

}  // namespace

double TestScoreOf(const RunData& run) {
  const RunNumbers numbers = NumbersOf(run);
  return std::isnan(numbers.rmse) ? numbers.accuracy : -numbers.rmse;
}

PageTable ResultTable(std::span<const NamedRun> runs) {
  PageTable table = FactTable(runs, kResults);
  const auto done = [](const NamedRun& run) { return run.data->state.kind == RunState::kDone; };
  if (runs.size() > 1 && !std::all_of(runs.begin(), runs.end(), done)) {
    std::vector<std::string> row{"state"};
    for (const NamedRun& run : runs) row.push_back(StateText(run.data->state));
    table.rows.push_back(std::move(row));
  }
  return table;
}

PageTable MachineTable(std::span<const NamedRun> runs) { return FactTable(runs, kMachine); }

Figures HeadFigures(std::span<const NamedRun> runs) {
  if (runs.size() == 1) return FiguresOfOne(*runs[0].data);
  std::vector<RunNumbers> all;
  for (const NamedRun& run : runs) all.push_back(NumbersOf(*run.data));
  Figures block;
  const auto add = [&](double RunNumbers::*number, const char* title, Fact::Kind kind,
                       Fact::Better better) {
    size_t best = 0;
    const double sign = better == Fact::kHigher ? 1 : -1;
    for (size_t i = 1; i < all.size(); ++i) {
      const double own = sign * (all[i].*number), most = sign * (all[best].*number);
      if (own > most || std::isnan(most)) best = i;
    }
    const double value = all[best].*number;
    if (std::isnan(value)) return;
    block.figures.push_back({NumberText(kind == Fact::kPlain ? std::round(value) : value, kind),
                             title, runs[best].name});
  };
  add(&RunNumbers::accuracy, "best test accuracy", Fact::kShare, Fact::kHigher);
  add(&RunNumbers::rmse, "lowest test RMSE", Fact::kFour, Fact::kLower);
  add(&RunNumbers::loss, "lowest test loss", Fact::kLoss, Fact::kLower);
  add(&RunNumbers::seconds, "shortest training time", Fact::kSeconds, Fact::kLower);
  add(&RunNumbers::rate, "most samples/s", Fact::kPlain, Fact::kHigher);
  return block;
}

namespace {

// Runs predict classes or numbers; of what none of them does there is no column.
std::vector<RowColumn> ColumnsFor(std::span<const RunNumbers> all) {
  const auto says = [&](double RunNumbers::*value) {
    return std::any_of(all.begin(), all.end(),
                       [&](const RunNumbers& numbers) { return std::isfinite(numbers.*value); });
  };
  const bool numbers = says(&RunNumbers::rmse), classes = says(&RunNumbers::accuracy) || !numbers;
  std::vector<RowColumn> columns;
  for (const RowColumn& column : kRowColumns) {
    const bool of_numbers = column.value == &RunNumbers::rmse || column.value == &RunNumbers::r2;
    const bool of_classes =
        column.value == &RunNumbers::accuracy || column.value == &RunNumbers::best;
    if ((of_numbers && !numbers) || (of_classes && !classes)) continue;
    columns.push_back(column);
  }
  return columns;
}

}  // namespace

PageTable RowsOfRuns(std::span<const NamedRun> runs) {
  PageTable table;
  table.sortable = true;
  table.header = {"run"};
  std::vector<RunNumbers> all;
  for (const NamedRun& run : runs) all.push_back(NumbersOf(*run.data));
  const std::vector<RowColumn> shown = ColumnsFor(all);
  for (const RowColumn& column : shown) table.header.emplace_back(column.title);
  const PageTable different = SettingsTable(runs, WhichSettings::kDifferent);
  const size_t settings = std::min(different.rows.size(), kMostSettingColumns);
  for (size_t i = 0; i < settings; ++i) table.header.push_back(different.rows[i][0]);
  table.header.emplace_back("state");
  std::vector<std::vector<double>> columns(shown.size());
  for (size_t r = 0; r < runs.size(); ++r) {
    std::vector<std::string> row{runs[r].name};
    for (size_t c = 0; c < shown.size(); ++c) {
      const double value = all[r].*shown[c].value;
      columns[c].push_back(value);
      row.push_back(std::isnan(value) ? "-" : shown[c].text(value));
    }
    for (size_t i = 0; i < settings; ++i) row.push_back(different.rows[i][r + 1]);
    row.push_back(StateText(runs[r].data->state));
    table.rows.push_back(std::move(row));
    table.styles.push_back(runs[r].style);
  }
  for (size_t c = 0; c < columns.size(); ++c) {
    for (const size_t r : BestOf(columns[c], shown[c].better)) {
      table.bold.push_back({r, c + 1});
    }
  }
  table.caption = "Click a column's name to sort by it; point at a run to highlight its curves.";
  if (settings < different.rows.size()) {
    table.caption +=
        fmt::format(" Shown are {} of {} settings that differ.", settings, different.rows.size());
  }
  return table;
}

}  // namespace trireme
