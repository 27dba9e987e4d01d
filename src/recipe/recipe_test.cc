#include "recipe/recipe.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/files.h"

namespace trireme {
namespace {

// Every file of recipes/ is a part of the program, parses, and says in its first line what it is.
TEST(Recipe, AllShippedOnesAreBuiltInAndParse) {
  std::set<std::string> files;
  for (const auto& file : std::filesystem::directory_iterator(TRIREME_SOURCE_DIR "/recipes")) {
    files.insert(file.path().stem().string());
  }
  std::set<std::string> names;
  for (const BuiltInRecipe& built_in : BuiltInRecipes()) {
    const std::string name(built_in.name);
    names.insert(name);
    EXPECT_EQ(built_in.text.substr(0, 2), "# ") << name;
    Recipe recipe;
    Sections sections;
    Bind(sections, recipe);
    EXPECT_NO_THROW(LoadRecipe(sections, name)) << name;
    EXPECT_EQ(ReadFile(TRIREME_SOURCE_DIR "/recipes/" + name + ".toml"), built_in.text);
  }
  EXPECT_EQ(names, files);
}

// It was trained on train and tested on val; what stands beside them was not looked at.
TEST(Recipe, OfARunThatKnowsNoValidationKeepsItsTwoParts) {
  const TemporaryDirectory folder;
  for (const char* part : {"train", "val", "test"})
    MakeDirectories(folder / (std::string("set/") + part));
  MakeDirectories(folder / "run");
  const auto load = [&](bool old) {
    Recipe recipe;
    recipe.data.source = "images:" + (folder / "set");
    std::string config = ConfigText(recipe);
    const std::string key = "validation_fraction = ";
    if (old) config.replace(config.find(key), key.size(), "# ");
    ReplaceFile(folder / "run/config.toml", config);
    Recipe loaded;
    Sections sections;
    Bind(sections, loaded);
    LoadRunRecipe(sections, folder / "run");
    return loaded.data;
  };
  EXPECT_EQ(load(true).train_folder, "train");
  EXPECT_EQ(load(true).test_folder, "val");
  EXPECT_EQ(load(false).train_folder, "");
}

}  // namespace
}  // namespace trireme
