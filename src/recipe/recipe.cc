#include "recipe/recipe.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/image_parts.h"
#include "data/task.h"
#include "graph/models/models.h"
#include "record/run_directory.h"

namespace trireme {

void Bind(Sections& sections, Recipe& recipe) {
  sections.Add("model", recipe.model);
  sections.Add("data", recipe.data);
  sections.Add("trainer", recipe.trainer);
  sections.Add("optimizer", recipe.optimizer);
  sections.Add("strategy", recipe.strategy);
  sections.Add("transport", recipe.transport);
  sections.Add("engine", recipe.engine);
  sections.Add("record", recipe.record);
  sections.Add("emulate", recipe.emulate);
}

namespace {

void SettleLength(const Sections& sections, TrainerOptions& trainer) {
  if (!sections.ByHand("trainer.epochs") || trainer.steps == 0) return;
  if (sections.ByHand("trainer.steps")) {
    throw UsageError(
        "trainer.epochs ({}) and trainer.steps ({}) both set the length of the run; give one",
        sections.Where("trainer.epochs"), sections.Where("trainer.steps"));
  }
  trainer.steps = 0;
}

void SettleBatch(const Sections& sections, TrainerOptions& trainer) {
  const Origin batch = sections.GivenBy("trainer.batch");
  const Origin per_worker = sections.GivenBy("trainer.batch_per_worker");
  if (per_worker > Origin::kRecipe && batch == Origin::kRecipe) {
    trainer.batch = TrainerOptions{}.batch;
  } else if (batch > Origin::kRecipe && per_worker == Origin::kRecipe) {
    trainer.batch_per_worker = 0;
  } else {
    sections.RefuseBoth("trainer.batch", "trainer.batch_per_worker");
  }
}

// What a network's file says beside its layers yields to what a recipe or a user says.
void TakeWritten(const Sections& sections, const WrittenNetwork& network, Recipe& recipe) {
  recipe.model.layers = network.layers;
  if (!network.weights.empty() && !sections.IsGiven("trainer.init")) {
    recipe.trainer.init = network.weights;
  }
  if (network.mean.empty() || sections.IsGiven("data.normalize")) return;
  recipe.data.normalize = "given";
  recipe.data.mean = network.mean;
  recipe.data.deviation = network.deviation;
}

// model.name and model.layers: which of them says more of the network. Its file is read here, once:
// from then on the text is part of the recipe.
void SettleNetwork(const Sections& sections, Recipe& recipe) {
  ModelOptions& model = recipe.model;
  const Origin name = sections.GivenBy("model.name");
  const Origin layers = sections.GivenBy("model.layers");
  const std::string file = AfterColon(model.name);
  const bool has_text = !model.layers.empty();
  if (const auto read = FindModel(model.name).read) {
    if (!file.empty() && (!has_text || name > layers)) TakeWritten(sections, read(file), recipe);
  } else if (has_text && layers > name) {
    model.name = TextModel().name;
  } else if (has_text && name > layers) {
    model.layers.clear();
  } else if (has_text) {
    throw UsageError("model.name \"{}\" ({}) and model.layers ({}) exclude each other; give one",
                     model.name, sections.Where("model.name"), sections.Where("model.layers"));
  }
}

}  // namespace

void SettlePairs(const Sections& sections, Recipe& recipe) {
  SettleLength(sections, recipe.trainer);
  SettleBatch(sections, recipe.trainer);
  SettleNetwork(sections, recipe);
}

std::string ConfigText(Recipe recipe) {
  Sections sections;
  Bind(sections, recipe);
  return sections.ToToml();
}

std::string BoundText(Recipe recipe, Binds whom) {
  Sections sections;
  Bind(sections, recipe);
  return sections.ToToml([whom](Binds binds) { return Includes(binds, whom); });
}

std::string ToldText(Recipe recipe) {
  Sections sections;
  Bind(sections, recipe);
  return sections.ToToml([](Binds binds) { return !Includes(binds, Binds::kLocal); });
}

RecipeEntries ReadRecipe(const std::string& path_or_name) {
  for (const BuiltInRecipe& recipe : BuiltInRecipes()) {
    // A name means the recipe, whatever the present folder holds; a path means the file if it is
    // there.
    const std::string file = std::string("recipes/") + std::string(recipe.name) + ".toml";
    if (path_or_name != recipe.name && (path_or_name != file || Exists(file))) continue;
    return {ParseToml(recipe.text, file), file};
  }
  if (Exists(path_or_name)) return {ReadTomlFile(path_or_name), path_or_name};
  std::vector<std::string> names;
  for (const BuiltInRecipe& recipe : BuiltInRecipes()) names.emplace_back(recipe.name);
  throw UsageError("recipe {}: no such file, and no built-in recipe has this name ({}){}",
                   path_or_name, fmt::join(names, ", "), DidYouMean(path_or_name, names));
}

namespace {

// A run from before there were validation parts goes on with the two that it had: where train, val
// and test stand beside each other, val tested.
void KeepTwoParts(std::vector<TomlEntry>& entries) {
  const auto find = [&](std::string_view key) {
    return std::find_if(entries.begin(), entries.end(), [key](const TomlEntry& entry) {
      return entry.section == "data" && entry.key == key;
    });
  };
  constexpr std::string_view kImages = "images:";
  const auto none = entries.end();
  const auto source = find("source"), train = find("train_folder"), test = find("test_folder");
  if (find("validation_fraction") != none || source == none || train == none || test == none ||
      !train->value.text.empty() || !source->value.text.starts_with(kImages)) {
    return;
  }
  const ImageParts parts = FindTwoImageParts(source->value.text.substr(kImages.size()));
  train->value.text = parts.train;
  test->value.text = parts.test;
}

}  // namespace

namespace {

// A run from before numbers could be predicted learns classes, whatever its labels look like.
void KeepClasses(std::vector<TomlEntry>& entries) {
  const auto is = [](std::string_view key) {
    return [key](const TomlEntry& entry) { return entry.section == "data" && entry.key == key; };
  };
  if (std::ranges::any_of(entries, is("task"))) return;
  const auto source = std::ranges::find_if(entries, is("source"));
  if (source == entries.end()) return;
  TomlEntry task = *source;
  task.key = "task";
  task.value.text = NameOf(Task::kClassification);
  entries.push_back(std::move(task));
}

}  // namespace

RecipeEntries ReadRunRecipe(const std::string& run) {
  const std::string file = run + "/config.toml";
  std::vector<TomlEntry> entries = ParseToml(ReadRunConfig(run), file);
  KeepTwoParts(entries);
  KeepClasses(entries);
  return {std::move(entries), file};
}

void LoadRecipe(Sections& sections, const std::string& path_or_name) {
  const RecipeEntries text = ReadRecipe(path_or_name);
  sections.Load(text.entries, text.file);
}

void LoadRunRecipe(Sections& sections, const std::string& run) {
  const RecipeEntries text = ReadRunRecipe(run);
  sections.Load(text.entries, text.file);
}

}  // namespace trireme
