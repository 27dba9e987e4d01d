// What there is to choose from: every list of the program, printed; and the runs of a folder.
#include "cli/list.h"

#include <fmt/core.h>

#include "cli/command.h"
#include "cli/run_list.h"
#include "data/sources.h"
#include "engine/engines.h"
#include "graph/models/models.h"
#include "graph/op.h"
#include "launch/transports.h"
#include "optimizer/rules.h"
#include "recipe/recipe.h"
#include "strategy/exchange/merge_kinds.h"
#include "strategy/inner/kinds.h"
#include "strategy/presets.h"

namespace trireme {
namespace {

std::string Row(std::string_view name, std::string_view help) {
  return fmt::format("  {:<34} {}\n", name, help);
}

std::string Data() {
  std::string text = "data (--data):\n";
  for (const SourceKind& kind : SourceKinds()) text += Row(kind.syntax, kind.help);
  return text;
}

std::string Models() { return "models (--model):\n" + ModelsPage(); }

std::string Optimizers() {
  std::string text = "optimizers (--optimizer):\n";
  for (const RuleDef& rule : AllRules()) text += Row(rule.name, rule.help);
  return text;
}

std::string Strategies() {
  std::string text = "strategies (--strategy):\n";
  for (const StrategyPreset& preset : StrategyPresets()) text += Row(preset.name, preset.help);
  return text;
}

// What a recipe may choose besides a preset.
std::string Choices() {
  std::string text = "how replicas advance within a step (strategy.inner):\n";
  for (const InnerKind& kind : InnerKinds()) text += Row(kind.name, kind.help);
  text += "\nwhat a worker and the centre do to each other (strategy.merge):\n";
  for (const MergeKind& kind : MergeKinds()) text += Row(kind.name, kind.help);
  return text;
}

std::string Engines() {
  std::string text = "engines (--device):\n";
  for (const EngineKind& kind : EngineKinds()) text += Row(kind.name, kind.help);
  return text;
}

std::string Transports() {
  std::string text = "transports (--transport):\n";
  for (const TransportKind& kind : TransportKinds()) text += Row(kind.name, kind.help);
  return text;
}

// The first line of a recipe is a comment that says what it is.
std::string Recipes() {
  std::string text = "recipes (trireme train RECIPE):\n";
  for (const BuiltInRecipe& recipe : BuiltInRecipes()) {
    const std::string_view line = recipe.text.substr(0, recipe.text.find('\n'));
    text += Row(recipe.name, line.substr(line.find_first_not_of("# ")));
  }
  return text;
}

std::string Operations() {
  std::string text = "operations:\n";
  for (const OpDef* op : AllOps()) text += Row(op->name, op->summary);
  return text;
}

// docs/keys.md is this page.
std::string Keys() {
  Recipe recipe;
  Sections sections;
  Bind(sections, recipe);
  return "# The keys of a recipe\n\nPrinted by `trireme list keys`. What a key binds:\n\n"
         "- ranks: all ranks of a job need the same value; clients: so do those that join a run.\n"
         "- resume: a run keeps the value until its end; `--resume` refuses a different one.\n"
         "  Dropout (except from or to 0, which would add or remove layers), smoothing,\n"
         "  augmentation, shards, precision and `[engine]` may change: they say how the next\n"
         "  steps compute, and a checkpoint holds nothing of them. `data.centre` may not: the\n"
         "  best checkpoint was chosen by the images that it crops.\n"
         "- nothing: each rank may have its own; this machine: so may each rank, and no other\n"
         "  machine is told.\n\n" +
         sections.Markdown();
}

struct Topic {
  std::string_view name;
  std::string (*text)();
  bool in_short;  // without a topic it is printed, too
};
constexpr Topic kTopics[] = {
    {"recipes", Recipes, true},
    {"models", Models, true},
    {"data", Data, true},
    {"strategies", Strategies, true},
    {"choices", Choices, false},
    {"transports", Transports, true},
    {"optimizers", Optimizers, true},
    {"engines", Engines, true},
    {"operations", Operations, false},
    {"keys", Keys, false},
};

int Runs(const Args& args, Process& process) {
  const std::string folder = args.Optional("DIR").value_or("runs");
  const std::vector<ListedRun> runs = FindRuns(folder);
  if (args.Has("--json")) {
    process.out.Write(RunListJson(runs).Text() + "\n");
  } else if (runs.empty()) {
    process.out.Print("there are no runs in {}\n", folder);
  } else {
    process.out.Write(RunTable(runs, process.out.coloured()));
  }
  return 0;
}

int Run(const Args& args, Process& process) {
  const auto wanted = args.Optional("TOPIC");
  if (wanted == "runs") return Runs(args, process);
  if (args.Optional("DIR") || args.Has("--json")) {
    throw UsageError("DIR and --json need the topic runs, as in: trireme list runs");
  }
  for (const Topic& topic : kTopics) {
    if (wanted == topic.name) {
      process.out.Write(topic.text());
      return 0;
    }
  }
  const std::vector<std::string> names = ListTopics();
  if (wanted) throw UsageError("there is no list of {}{}", *wanted, DidYouMean(*wanted, names));
  std::string text;
  for (const Topic& topic : kTopics) {
    if (topic.in_short) text += (text.empty() ? "" : "\n") + topic.text();
  }
  process.out.Write(text);
  return 0;
}

constexpr Flag kFlags[] = {{"--json", "", "print JSON (only for runs)"}};

constexpr Place kPlaces[] = {
    {"TOPIC", Place::kOptional,
     "recipes, models, data, strategies, choices, transports, optimizers, engines, operations, "
     "keys or runs"},
    {"DIR", Place::kOptional, "for runs: the folder that holds them (default: runs)"}};

}  // namespace

std::vector<std::string> ListTopics() {
  std::vector<std::string> names;
  for (const Topic& topic : kTopics) names.emplace_back(topic.name);
  names.emplace_back("runs");
  return names;
}

extern const Command kList;
const Command kList = {
    .name = "list",
    .summary = "list what there is to choose from, and the runs there are",
    .usage = "trireme list [TOPIC] | trireme list runs [DIR] [--json]",
    .examples =
        "trireme list\n"
        "trireme list models        # parameters and multiply-adds of each\n"
        "trireme list operations\n"
        "trireme list keys          # of a recipe, as a page of the documentation\n"
        "trireme list runs          # what was trained: date, data, model, accuracy, state\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
