#pragma once
#include <optional>
#include <string>
#include <vector>

#include "recipe/recipe.h"
#include "record/json.h"

namespace trireme {

// A key and the values that it takes, one after the other.
struct Variation {
  std::string key;
  std::vector<std::string> values;
  // Not empty: `key` and `values` are names only, and value i stands for settings[i]
  // (section.key=value).
  std::vector<std::vector<std::string>> settings = {};
};
// As a key: ranks that train. transport.ranks follows from it, with a strategy's servers on top.
inline constexpr char kWorkers[] = "workers";
// "KEY=V1,V2,..."; commas inside brackets and quotes belong to a value.
Variation ParseVariation(const std::string& text);

// What a sweep trains: a recipe with some settings, in every combination of the varied keys.
struct SweepPlan {
  std::string recipe;                 // a file or a built-in one; empty: none
  std::vector<std::string> settings;  // section.key=value, for every run
  std::vector<Variation> vary;
  int repeat = 3;
};

// UsageError: a key that is not known or given twice, a value that it cannot have, too many runs.
void CheckPlan(const SweepPlan& plan);

// One value of each varied key; the last key varies fastest.
struct Combination {
  int index = 0;
  std::vector<std::string> values;
};
std::vector<Combination> Combinations(const SweepPlan& plan);

// What such a run is, resolved as far as the recipe's own keys go.
Recipe RecipeOf(const SweepPlan& plan, const Combination& combination);

// How many work at a run: workers of the strategy, times the threads that are varied (those that
// compute, and those that load). Nothing where the strategy cannot be.
std::optional<double> ParallelismOf(const SweepPlan& plan, const Combination& combination);
bool SetsParallelism(const std::string& key);  // a key by which ParallelismOf changes

// What is trained, for titles: the recipe, or where there is none the data.
std::string NameOf(const SweepPlan& plan);

// Words for this program, without --out.
std::vector<std::string> TrainWords(const SweepPlan& plan, const Combination& combination);
std::string CombinationText(const SweepPlan& plan, const Combination& combination);

// All that decides what is trained; two sweeps whose texts differ are different sweeps. The number
// of repetitions is not part of it.
Json PlanJson(const SweepPlan& plan);

}  // namespace trireme
