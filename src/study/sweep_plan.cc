#include "study/sweep_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "strategy/choice.h"
#include "trainer/job.h"

namespace trireme {
namespace {

constexpr size_t kMostRuns = 10'000;

// At commas that stand in no bracket and no quotes.
std::vector<std::string> SplitValues(std::string_view text) {
  std::vector<std::string> values(1);
  int depth = 0;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (!quoted && c == '[') ++depth;
    if (!quoted && c == ']') --depth;
    if (c == ',' && !quoted && depth == 0) {
      values.emplace_back();
    } else {
      values.back() += c;
    }
  }
  for (std::string& value : values) value = std::string(Trim(value));
  return values;
}

void Load(const SweepPlan& plan, Sections& sections) {
  if (!plan.recipe.empty()) LoadRecipe(sections, plan.recipe);
  for (const std::string& setting : plan.settings) sections.SetAssignment(setting);
}

constexpr char kRanks[] = "transport.ranks";

// What the value with this index sets. Of workers: as many ranks, where there is no server.
std::vector<std::string> SettingsOf(const Variation& variation, size_t index) {
  if (!variation.settings.empty()) return variation.settings.at(index);
  return {(variation.key == kWorkers ? kRanks : variation.key) + "=" + variation.values[index]};
}

size_t IndexOf(const Variation& variation, const std::string& value) {
  return size_t(std::ranges::find(variation.values, value) - variation.values.begin());
}

// What a combination sets, beyond what the plan sets for all.
std::vector<std::string> AssignmentsOf(const SweepPlan& plan, const Combination& combination) {
  std::vector<std::string> all;
  std::optional<int> workers;
  for (size_t i = 0; i < plan.vary.size(); ++i) {
    const Variation& variation = plan.vary[i];
    const std::string& value = combination.values[i];
    if (variation.key == kWorkers) {
      workers = ParseNumber<int>(value);
      continue;
    }
    for (std::string& setting : SettingsOf(variation, IndexOf(variation, value))) {
      all.push_back(std::move(setting));
    }
  }
  if (!workers) return all;
  Recipe recipe;
  Sections sections;
  Bind(sections, recipe);
  Load(plan, sections);
  for (const std::string& setting : all) sections.SetAssignment(setting);
  all.push_back(fmt::format("{}={}", kRanks, RanksFor(recipe.strategy, *workers)));
  return all;
}

void CheckVariation(const SweepPlan& plan, const Variation& variation) {
  std::vector<std::string> seen;
  for (size_t i = 0; i < variation.values.size(); ++i) {
    const std::string& value = variation.values[i];
    Recipe recipe;
    Sections sections;
    Bind(sections, recipe);
    const std::vector<std::string> sets = SettingsOf(variation, i);
    for (const std::string& setting : plan.settings) {
      const auto same = [&](const std::string& set) { return KeyOf(set) == KeyOf(setting); };
      if (std::ranges::any_of(sets, same)) {
        throw UsageError("--vary {}: the key is also set ({}); remove one", variation.key, setting);
      }
    }
    try {
      for (const std::string& setting : sets) sections.SetAssignment(setting);
    } catch (const UsageError& error) {
      std::string_view what = error.what();  // --set ...: said of what was written as --vary
      if (what.starts_with("--set ")) what.remove_prefix(6);
      throw UsageError("--vary {}", what);
    }
    if (std::find(seen.begin(), seen.end(), value) != seen.end()) {
      throw UsageError("--vary {}: {} appears twice", variation.key, value);
    }
    seen.push_back(value);
  }
}

}  // namespace

Variation ParseVariation(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == text.npos) throw UsageError("--vary must be KEY=V1,V2,..., got {}", text);
  Variation variation{std::string(Trim(text.substr(0, equals))),
                      SplitValues(std::string_view(text).substr(equals + 1))};
  for (const std::string& value : variation.values) {
    if (value.empty()) throw UsageError("--vary {}: a value is empty", text);
  }
  return variation;
}

void CheckPlan(const SweepPlan& plan) {
  if (plan.repeat < 1 || plan.repeat > 1000) {
    throw UsageError("--repeat must be between 1 and 1000, got {}", plan.repeat);
  }
  Recipe recipe;
  Sections sections;
  Bind(sections, recipe);
  Load(plan, sections);
  size_t runs = size_t(plan.repeat);
  for (size_t i = 0; i < plan.vary.size(); ++i) {
    CheckVariation(plan, plan.vary[i]);
    for (size_t j = 0; j < i; ++j) {
      if (plan.vary[j].key == plan.vary[i].key) {
        throw UsageError("--vary {} appears twice", plan.vary[i].key);
      }
      for (const size_t k : {i, j}) {
        if (plan.vary[k].key == kWorkers && plan.vary[i + j - k].key == kRanks) {
          throw UsageError("--vary {}: {} follows from it; vary one of the two", kWorkers, kRanks);
        }
      }
    }
    runs *= plan.vary[i].values.size();
    if (runs > kMostRuns) {
      throw UsageError("a sweep can have at most {} runs; vary fewer values or lower --repeat",
                       kMostRuns);
    }
  }
  for (const Combination& combination : Combinations(plan)) RecipeOf(plan, combination);
}

std::vector<Combination> Combinations(const SweepPlan& plan) {
  std::vector<Combination> all(1);
  for (const Variation& variation : plan.vary) {
    std::vector<Combination> longer;
    for (const Combination& combination : all) {
      for (const std::string& value : variation.values) {
        longer.push_back(combination);
        longer.back().values.push_back(value);
      }
    }
    all = std::move(longer);
  }
  for (size_t i = 0; i < all.size(); ++i) all[i].index = int(i);
  return all;
}

Recipe RecipeOf(const SweepPlan& plan, const Combination& combination) {
  Recipe recipe;
  Sections sections;
  Bind(sections, recipe);
  Load(plan, sections);
  for (const std::string& setting : AssignmentsOf(plan, combination)) {
    sections.SetAssignment(setting);
  }
  SettlePairs(sections, recipe);
  return recipe;
}

bool SetsParallelism(const std::string& key) {
  return key == kWorkers || key == kRanks || key == "trainer.threads" || key == "data.threads";
}

std::optional<double> ParallelismOf(const SweepPlan& plan, const Combination& combination) {
  const Recipe recipe = RecipeOf(plan, combination);
  double parallelism = 1;
  try {
    parallelism = ChooseStrategy(recipe).workers();
  } catch (const UsageError&) {
    return {};
  }
  for (size_t i = 0; i < plan.vary.size(); ++i) {
    const std::string& key = plan.vary[i].key;
    if (key == kWorkers || key == kRanks || !SetsParallelism(key)) continue;
    const auto threads = ParseNumber<double>(combination.values[i]);
    if (!threads || *threads <= 0) return {};
    parallelism *= *threads;
  }
  return parallelism;
}

std::string NameOf(const SweepPlan& plan) {
  if (!plan.recipe.empty()) return plan.recipe;
  return RecipeOf(plan, Combinations(plan).at(0)).data.source;
}

std::vector<std::string> TrainWords(const SweepPlan& plan, const Combination& combination) {
  std::vector<std::string> words{"train"};
  if (!plan.recipe.empty()) words.push_back(plan.recipe);
  for (const std::string& setting : plan.settings) {
    words.insert(words.end(), {"--set", setting});
  }
  for (const std::string& setting : AssignmentsOf(plan, combination)) {
    words.insert(words.end(), {"--set", setting});
  }
  words.push_back("--quiet");
  return words;
}

std::string CombinationText(const SweepPlan& plan, const Combination& combination) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < plan.vary.size(); ++i) {
    parts.push_back(plan.vary[i].key + "=" + combination.values[i]);
  }
  return parts.empty() ? NameOf(plan) : fmt::format("{}", fmt::join(parts, ", "));
}

Json PlanJson(const SweepPlan& plan) {
  Json vary = Json::Array();
  for (const Variation& variation : plan.vary) {
    Json one = Json::Object();
    one.Add("key", variation.key).Add("values", variation.values);
    if (!variation.settings.empty()) {
      std::vector<std::string> settings;
      for (const auto& sets : variation.settings) {
        settings.push_back(fmt::format("{}", fmt::join(sets, " ")));
      }
      one.Add("settings", settings);
    }
    vary.Append(std::move(one));
  }
  Recipe recipe;
  Sections sections;
  Bind(sections, recipe);
  Load(plan, sections);
  SettlePairs(sections, recipe);
  Json json = Json::Object();
  json.Add("recipe", plan.recipe).Add("settings", plan.settings);
  json.Add("vary", std::move(vary)).Add("config", sections.ToToml());
  return json;
}

}  // namespace trireme
