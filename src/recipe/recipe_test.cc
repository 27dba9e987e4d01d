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

std::set<std::string> KeysThat(bool (*which)(Binds)) {
  Recipe recipe;
  Sections sections;
  Bind(sections, recipe);
  std::set<std::string> paths;
  for (const std::string& path : sections.Paths()) {
    const std::string section = path.substr(0, path.find('.'));
    const bool whole = section == "record" || section == "emulate";  // all keys are alike
    if (which(sections.At(path).binds())) paths.insert(whole ? section : path);
  }
  return paths;
}

// Most keys bind all ranks and clients. These do not.
TEST(Recipe, KeysSayWhatTheyBind) {
  using enum Binds;
  const std::set<std::string> local = {
      "engine.memory_mb", "engine.samples_mb",    "trainer.threads",      "transport.secret_file",
      "transport.hosts",  "transport.meet",       "transport.bind",       "transport.listen",
      "transport.memory", "transport.memory_way", "transport.mpi_library"};
  EXPECT_EQ(KeysThat([](Binds binds) { return Includes(binds, kLocal); }), local);
  std::set<std::string> differ = local;  // between ranks
  differ.insert({"engine.check", "engine.measure", "trainer.pin", "transport.name",
                 "transport.ranks", "transport.join_s", "transport.timeout_s", "transport.throttle",
                 "transport.latency_ms", "transport.plugin"});
  EXPECT_EQ(KeysThat([](Binds binds) { return !Includes(binds, kRanks); }), differ);
  differ.insert({"data.source", "data.ledger", "data.threads", "trainer.device", "trainer.init",
                 "trainer.init_except", "record", "emulate"});
  EXPECT_EQ(KeysThat([](Binds binds) { return !Includes(binds, kJob); }), differ);
  // What stays on this machine binds nobody, and clients are not asked for less than ranks.
  EXPECT_TRUE(KeysThat([](Binds b) { return Includes(b, kLocal) && b != kLocal; }).empty());
  EXPECT_TRUE(
      KeysThat([](Binds b) { return Includes(b, kClients) && !Includes(b, kRanks); }).empty());
}

TEST(Recipe, PartsOfItHoldTheKeysThatBind) {
  Recipe one, other;
  other.trainer.threads = 3;
  other.transport.secret_file = "s";
  EXPECT_EQ(BoundText(one, Binds::kRanks), BoundText(other, Binds::kRanks));
  EXPECT_EQ(ToldText(one), ToldText(other));
  other.data.source = "csv:mine";
  EXPECT_NE(BoundText(one, Binds::kRanks), BoundText(other, Binds::kRanks));
  EXPECT_EQ(BoundText(one, Binds::kJob), BoundText(other, Binds::kJob));
  EXPECT_NE(ToldText(one), ToldText(other));
  other.model.dropout = 0.5;
  EXPECT_NE(BoundText(one, Binds::kJob), BoundText(other, Binds::kJob));
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
