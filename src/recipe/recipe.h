#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/sections.h"
#include "base/toml.h"
#include "data/options.h"
#include "graph/engine_options.h"
#include "graph/models/options.h"
#include "launch/options.h"
#include "optimizer/options.h"
#include "recipe/emulate_options.h"
#include "recipe/trainer_options.h"
#include "record/options.h"
#include "strategy/options.h"

namespace trireme {

// A run, described: one struct per section of the TOML file.
struct Recipe {
  ModelOptions model;
  DataOptions data;
  TrainerOptions trainer;
  OptimizerOptions optimizer;
  StrategyOptions strategy;
  TransportOptions transport;
  EngineOptions engine;
  RecordOptions record;
  EmulateOptions emulate;
};

// Ties the keys of all sections to `recipe`, which stays where it is while `sections` lives.
void Bind(Sections& sections, Recipe& recipe);

// Settles pairs of keys of which one is enough, when all are given: one from the command line wins
// over the other in a recipe (trainer.epochs and steps, trainer.batch and batch_per_worker,
// model.name and layers). Reads the file of a network (text, ONNX) and takes what else it says.
// UsageError where the command line gives both.
void SettlePairs(const Sections& sections, Recipe& recipe);

// The recipe as a file that repeats the run.
std::string ConfigText(Recipe recipe);

// Parts of it: the keys that bind all of `whom`, and those that other machines may be told.
std::string BoundText(Recipe recipe, Binds whom);
std::string ToldText(Recipe recipe);

// The recipes that are part of the program (recipes/*.toml).
struct BuiltInRecipe {
  std::string_view name;  // iris
  std::string_view text;
};
std::span<const BuiltInRecipe> BuiltInRecipes();

// What a recipe gives, and the file that messages name.
struct RecipeEntries {
  std::vector<TomlEntry> entries;
  std::string file;
};
// A built-in recipe by its name, a file, or a built-in one by the path it has in the repository.
RecipeEntries ReadRecipe(const std::string& path_or_name);
// The recipe that a run was made with; a UsageError if the folder holds no run.
RecipeEntries ReadRunRecipe(const std::string& run);

// The same, loaded at once.
void LoadRecipe(Sections& sections, const std::string& path_or_name);
void LoadRunRecipe(Sections& sections, const std::string& run);

}  // namespace trireme
