#include "trainer/recipe.h"

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "base/toml.h"
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

std::string ConfigText(Recipe recipe) {
  Sections sections;
  Bind(sections, recipe);
  return sections.ToToml();
}

void LoadRecipe(Sections& sections, const std::string& path_or_name) {
  for (const BuiltInRecipe& recipe : BuiltInRecipes()) {
    // A name means the recipe, whatever the present folder holds; a path means the file if it is
    // there.
    const std::string file = std::string("recipes/") + std::string(recipe.name) + ".toml";
    if (path_or_name != recipe.name && (path_or_name != file || Exists(file))) continue;
    return sections.Load(ParseToml(recipe.text, file), file);
  }
  if (Exists(path_or_name)) return sections.LoadFile(path_or_name);
  std::vector<std::string> names;
  for (const BuiltInRecipe& recipe : BuiltInRecipes()) names.emplace_back(recipe.name);
  throw UsageError("recipe {}: no such file, and no built-in recipe has this name ({}){}",
                   path_or_name, fmt::join(names, ", "), DidYouMean(path_or_name, names));
}

void LoadRunRecipe(Sections& sections, const std::string& run) {
  const std::string file = run + "/config.toml";
  sections.Load(ParseToml(ReadRunConfig(run), file), file);
}

}  // namespace trireme
