// Several strategies on the same recipe, under the same budget, on the same emulated machine.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/signals.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/recipe_flags.h"
#include "launch/transports.h"
#include "recipe/emulate_options.h"
#include "recipe/recipe.h"
#include "record/run_lock.h"
#include "strategy/choice.h"
#include "strategy/presets.h"
#include "study/child.h"
#include "study/comparison.h"
#include "study/comparison_page.h"
#include "study/link_words.h"
#include "study/plan_file.h"
#include "study/results.h"
#include "study/run_queue.h"

namespace trireme {
namespace {

constexpr Flag kFlags[] = {
    {"--strategies", "LIST", "names separated by commas (`trireme list strategies`)"},
    {"--workers", "N", "ranks that train, for every strategy; servers are extra (default: 4)"},
    {"--transport", "NAME",
     "how ranks talk (`trireme list transports`; default: threads, or tcp with --link)"},
    {"--step-ms", "MS", "make every step of a worker take this long (emulate.step_ms)"},
    {"--slow", "WORKER:FACTORx",
     "make that worker's steps take FACTOR times as long, or with WORKER:MS that much longer"},
    {"--link", "RATE,LATENCY", "emulate this connection for each rank, as in 1Gbit/s,5ms"},
    {"--data", "SOURCE", "the samples: iris, csv:FILE, mnist:DIR, ... (`trireme list data`)",
     "data.source"},
    {"--model", "NAME", "the network: mlp, cnn, resnet18, ... (`trireme list models`)",
     "model.name"},
    {"--epochs", "N", "passes over the training samples", "trainer.epochs"},
    {"--steps", "N", "steps of the whole run, instead of epochs", "trainer.steps"},
    {"--seed", "N", "seed of weights, order, augmentation and split", "trainer.seed"},
    {"--threads", "N", "compute threads of a rank, or auto", "trainer.threads"},
    kSetFlag,
    {"--for", "STRATEGY:KEY=VALUE", "set a key for one of the strategies; may be repeated"},
    {"--out", "DIR",
     "where runs and results are written (default: runs/compare-DATE); an unfinished comparison "
     "there is continued"},
    {"--retry", "", "run failed strategies again"},
    {"--json", "", "print JSON"},
};

constexpr Place kPlaces[] = {
    {"RECIPE", Place::kOptional, "a TOML file or the name of a built-in recipe (default: iris)"}};

struct Comparison {
  std::string recipe;  // empty: none
  std::string source;  // of the samples
  std::string config;  // the recipe with the settings of all runs
  std::vector<std::string> strategies;
  int workers = 4;
  std::vector<std::string> common;                       // KEY=VALUE that every run gets
  std::vector<std::pair<std::string, std::string>> own;  // strategy, KEY=VALUE
  std::optional<SlowRank> slow;                          // its rank is the worker's number
  std::string slow_text;                                 // behind the colon
  std::string out;
};

void ReadSettings(const Args& args, Comparison& c) {
  for (const std::string& text : args.Values("--for")) {
    const size_t colon = text.find(':');
    const std::string name = text.substr(0, colon);
    if (colon == text.npos || text.find('=', colon) == text.npos) {
      throw UsageError("--for must be STRATEGY:KEY=VALUE, got {}", text);
    }
    if (std::find(c.strategies.begin(), c.strategies.end(), name) == c.strategies.end()) {
      throw UsageError("--for {}: {} is not one of --strategies", text, name);
    }
    c.own.emplace_back(name, text.substr(colon + 1));
  }
  if (const auto slow = args.Value("--slow")) {
    c.slow = ParseSlow(*slow, "--slow", c.workers);
    c.slow_text = slow->substr(slow->find(':') + 1);
  }
}

void AddLink(const Args& args, Comparison& c) {
  const auto link = args.Value("--link");
  const std::string transport = args.Value("--transport").value_or(link ? "tcp" : "threads");
  c.common.push_back("transport.name=" + transport);
  if (!link) return;
  const TransportKind* kind = FindTransport(transport);
  if (!kind || !kind->emulates_link) {
    throw UsageError(
        "--link emulates a network, which transport {} does not use; use --transport tcp",
        transport);
  }
  const LinkWords words = ParseLink(*link);
  c.common.push_back(fmt::format("transport.throttle={}", words.bytes_per_s));
  c.common.push_back(fmt::format("transport.latency_ms={}", words.latency_ms));
}

// What is wrong with the keys is refused here, not by each run.
Recipe ReadRecipe(const Args& args, const Comparison& c) {
  constexpr std::pair<const char*, const char*> kOwn[] = {{"strategy.name", "--strategies"},
                                                          {"transport.ranks", "--workers"},
                                                          {"transport.name", "--transport"}};
  for (const auto& [key, flag] : kOwn) {
    if (args.Sets(key)) throw UsageError("--set {} cannot be used with compare; use {}", key, flag);
  }
  Recipe recipe;
  Sections sections;
  Bind(sections, recipe);
  if (!c.recipe.empty()) LoadRecipe(sections, c.recipe);
  args.ApplyTo(sections);
  SettlePairs(sections, recipe);
  return recipe;
}

Comparison ReadComparison(const Args& args) {
  Comparison c;
  c.recipe = FollowedRecipe(args).value_or("");
  const Recipe recipe = ReadRecipe(args, c);
  c.source = recipe.data.source;
  c.config = ConfigText(recipe);
  const auto list = args.Value("--strategies");
  if (!list)
    throw UsageError("--strategies is missing; name those to compare, as in allreduce,local-sgd");
  for (const std::string& name : Split(*list, ',')) {
    FindPreset(name);
    if (std::find(c.strategies.begin(), c.strategies.end(), name) != c.strategies.end()) {
      throw UsageError("--strategies: {} appears twice", name);
    }
    c.strategies.push_back(name);
  }
  c.workers = args.Number("--workers", recipe.transport.ranks > 1 ? recipe.transport.ranks : 4);
  if (c.workers < 1 || c.workers > 512) {
    throw UsageError("--workers must be between 1 and 512, got {}", c.workers);
  }
  ReadSettings(args, c);
  c.common = args.Settings();
  AddLink(args, c);
  if (const double step_ms = args.Number("--step-ms", 0.0); step_ms != 0) {
    c.common.push_back(fmt::format("emulate.step_ms={}", step_ms));
  }
  c.out = args.Value("--out").value_or(DatedFolder("compare"));
  if (Exists(c.out) && !Exists(c.out + "/plan.json") && !std::filesystem::is_empty(c.out)) {
    throw UsageError("--out {} exists and is not a comparison; use another --out", c.out);
  }
  return c;
}

std::vector<std::string> WordsFor(const Comparison& c, const std::string& strategy) {
  const int ranks = RanksFor({.name = strategy}, c.workers);
  std::vector<std::string> words{"train"};
  if (!c.recipe.empty()) words.push_back(c.recipe);
  words.insert(words.end(), {"--strategy", strategy, "--ranks", std::to_string(ranks), "--quiet",
                             "--out", c.out + "/" + strategy});
  const auto set = [&](const std::string& setting) {
    words.insert(words.end(), {"--set", setting});
  };
  const auto has_own = [&](std::string_view key) {
    return std::ranges::any_of(
        c.own, [&](const auto& own) { return own.first == strategy && KeyOf(own.second) == key; });
  };
  for (const std::string& setting : c.common) {
    if (!has_own(KeyOf(setting))) set(setting);
  }
  if (c.slow) {
    set(fmt::format("emulate.slow={}:{}", c.slow->rank + ranks - c.workers, c.slow_text));
  }
  for (const auto& [name, setting] : c.own) {
    if (name == strategy) set(setting);
  }
  return words;
}

// All that decides what a strategy's run is. More strategies may be compared later.
Json PlanOf(const Comparison& c) {
  std::vector<std::string> own;
  for (const auto& [name, setting] : c.own) own.push_back(name + ":" + setting);
  Json json = Json::Object();
  json.Add("recipe", c.recipe).Add("workers", c.workers).Add("settings", c.common);
  json.Add("slow", c.slow ? fmt::format("{}:{}", c.slow->rank, c.slow_text) : "").Add("for", own);
  return std::move(json.Add("config", c.config));
}

// A run that has a summary or failed is done; what was interrupted is begun again.
std::optional<ComparedRun> ReadOne(const Comparison& c, const std::string& strategy) {
  const std::string folder = c.out + "/" + strategy;
  if (Exists(folder + ".error")) {
    return ComparedRun{.strategy = strategy,
                       .error = std::string(Trim(ReadFile(folder + ".error")))};
  }
  if (!Exists(folder + "/summary.json")) return {};
  const StrategyChoice choice = ResolveStrategy({.name = strategy}, {.ranks = c.workers + 1});
  try {
    return ReadComparedRun(folder, c.workers, !choice.in_step() || choice.local_steps());
  } catch (const Error&) {  // damaged: not a run that is done
    return {};
  }
}

std::string RunOne(const Comparison& c, const std::string& strategy, StopNotice& signals) {
  const std::string folder = c.out + "/" + strategy, log = folder + ".log";
  ClearRun(folder);
  std::string error;
  try {
    const int code = RunChild(WordsFor(c, strategy), log, signals);
    if (signals.stop()) return "";
    if (code != 0) error = ChildError(log, code);
  } catch (const Error& refused) {  // it cannot have so many workers
    error = refused.what();
  }
  if (error.empty() && !ReadOne(c, strategy)) error = "the run succeeded but left no summary.json";
  if (!error.empty()) {
    ReplaceFile(folder + ".error", error + "\n");
    return fmt::format("{} failed: {}", strategy, error);
  }
  const ComparedRun run = ReadOne(c, strategy).value();
  return fmt::format("{}: {} of training, {} samples/s", strategy, FormatSeconds(run.train_seconds),
                     FormatCount(int64_t(run.samples_per_second)));
}

// 0, or the code with which it was stopped.
int RunAll(const Comparison& c, const Args& args, const Signals& signals, StopNotice& notice,
           const Log& log) {
  MakeDirectories(c.out);
  const RunLock lock(c.out);
  AdoptPlan(c.out, PlanOf(c), "comparison");
  for (const std::string& strategy : c.strategies) {
    const std::string error = c.out + "/" + strategy + ".error";
    if (args.Has("--retry") && Exists(error)) RemoveTree(error);
  }
  return RunQueued(
      {.count = c.strategies.size(),
       .done = [&](size_t run) { return ReadOne(c, c.strategies[run]).has_value(); },
       .run = [&](size_t run, int, int) { return RunOne(c, c.strategies[run], notice); },
       .kind = [](size_t) { return size_t{0}; },
       .stopped = [&] { return signals.ExitCode(); },
       .say = [&](const std::string& line) { log.Info("compare", "{}", line); }});
}

int Run(const Args& args, Process& process) {
  const Comparison c = ReadComparison(args);
  const Log log(process.log, Log::kNoRank);
  const Signals signals;
  StopNotice notice(signals, log, "compare", "stopping the current run");
  std::vector<std::string> words{"trireme", "compare"};
  if (!c.recipe.empty()) words.push_back(c.recipe);
  for (std::string& word : args.FlagsWithout({"--out", "--retry", "--json"})) {
    words.push_back(std::move(word));
  }
  const std::string command = ShellLine(words);
  words.insert(words.end(), {"--out", c.out});
  if (const int code = RunAll(c, args, signals, notice, log)) {
    log.Info("compare", "stopped by a signal; continue with: {}", ShellLine(words));
    return code;
  }
  std::vector<ComparedRun> runs;
  for (const std::string& strategy : c.strategies) runs.push_back(ReadOne(c, strategy).value());
  Json json = Json::Object();
  json.Add("recipe", c.recipe).Add("source", c.source);
  json.Add("settings", c.common);
  if (const auto slow = args.Value("--slow")) json.Add("slow", *slow);
  json.Add("runs", ComparisonJson(runs));
  ReplaceFile(c.out + "/compare.json", json.Text(1) + "\n");
  ReplaceFile(c.out + "/compare.csv", ComparisonCsv(runs));
  WritePage(ComparisonPage(c.recipe.empty() ? c.source : "recipe " + c.recipe, runs, command),
            c.out);
  if (args.Has("--json")) {
    process.out.Write(json.Text() + "\n");
  } else {
    process.out.Write(ComparisonTable(runs));
    process.out.Print("runs, compare.json and compare.csv are in {}\n", c.out);
    process.out.Print("charts are in {}/page.html\n", c.out);
  }
  const bool failed = std::any_of(runs.begin(), runs.end(),
                                  [](const ComparedRun& run) { return !run.error.empty(); });
  return failed ? 1 : 0;
}

}  // namespace

extern const Command kCompare;
const Command kCompare = {
    .name = "compare",
    .summary = "train with several strategies under the same budget, and compare them",
    .usage = "trireme compare [RECIPE] --strategies LIST [flags]",
    .examples =
        "trireme compare --strategies allreduce,local-sgd --epochs 5\n"
        "trireme compare fashion-mlp --strategies allreduce,hogwild,easgd --step-ms 20 --slow "
        "3:3x\n"
        "trireme compare fashion-mlp --strategies allreduce,local-sgd --link 1Gbit/s,5ms\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
