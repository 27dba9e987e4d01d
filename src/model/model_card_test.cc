#include "model/model_card.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "record/state_files.h"

namespace trireme {
namespace {

ModelCard SaveAndLoad(const ModelCard& card) {
  const std::string path = std::filesystem::temp_directory_path() /
                           ("trireme-card-" + std::to_string(getpid()) + ".safetensors");
  Json values = Json::Object();
  StateFileWriter writer(path, {}, values);
  card.Save(writer);
  writer.Finish();
  ModelCard loaded = ModelCard::Load(StateFileReader(path, values));
  std::filesystem::remove(path);
  return loaded;
}

TEST(ModelCard, ComesBackAsItWasSaved) {
  const std::vector<std::string> classes = {"a", "a name that no short string holds", "\"c\"\n"};
  const ModelCard card = {{5, 4, 2}, classes, Normalizer({1, 0.5f}, {0, -0.25f}), {70, 30}};
  const ModelCard loaded = SaveAndLoad(card);
  EXPECT_EQ(loaded.shape, card.shape);
  EXPECT_EQ(loaded.classes, classes);
  EXPECT_EQ(loaded.samples, card.samples);
  EXPECT_EQ(loaded.columns, ColumnNames{});
  EXPECT_EQ(loaded.normalizer.scale(), card.normalizer.scale());
  EXPECT_EQ(loaded.normalizer.shift(), card.normalizer.shift());
}

TEST(ModelCard, KnowsTheScaleOfNumbers) {
  ModelCard card = {{1, 1, 2}, {}, Normalizer::Identity(2), {7, 3}};
  card.normalizer.SetTarget({123.25, 1.0 / 3});
  const ModelCard loaded = SaveAndLoad(card);
  EXPECT_EQ(loaded.task(), Task::kRegression);
  EXPECT_EQ(loaded.outputs(), 1);
  EXPECT_EQ(loaded.normalizer.target()->mean, 123.25);
  EXPECT_EQ(loaded.normalizer.target()->deviation, 1.0 / 3);
}

TEST(ModelCard, KnowsTheColumns) {
  const ModelCard card = {{1, 1, 2},
                          {"x", "y"},
                          Normalizer::Identity(2),
                          {7, 3, 2},
                          {{"width, cm", "\"height\""}, "kind", {"Id", ""}}};
  const ModelCard loaded = SaveAndLoad(card);
  EXPECT_EQ(loaded.columns, card.columns);
  EXPECT_EQ(loaded.codes, ColumnCodes{});
  EXPECT_EQ(loaded.samples, card.samples);
}

TEST(ModelCard, KnowsHowColumnsBecomeInputs) {
  ModelCard card = {{1, 1, 6}, {"x", "y"}, Normalizer::Identity(6), {7, 3}};
  EXPECT_EQ(SaveAndLoad(card).layers, "");
  card.layers = "flatten\ndense classes  # \"x\"\n";
  EXPECT_EQ(SaveAndLoad(card).layers, card.layers);
  card.columns = {{"colour", "a", "b", "c"}, "kind", {}};
  card.codes = {{{"blue", "\"red\", dark"}, 0.0f}, {{}, 0.1f, true}, {{}, -3.0f}, {}};
  EXPECT_EQ(SaveAndLoad(card).codes, card.codes);
  EXPECT_EQ(SaveAndLoad(card).columns, card.columns);
  card.codes.pop_back();
  EXPECT_THROW(SaveAndLoad(card), Error);
}

}  // namespace
}  // namespace trireme
