#include "trainer/mistakes_json.h"

#include <gtest/gtest.h>

#include "base/base64.h"
#include "data/memory_source.h"

namespace trireme {
namespace {

TEST(MistakesJson, ATableHasTheFieldsOfItsRows) {
  DataSet data{.name = "t", .shape = {1, 1, 3}, .classes = {"no", "yes"}};
  data.columns.values = {"x", "colour"};
  data.codes = {{}, {.categories = {"red", "blue"}}};
  data.test = std::make_unique<Subset>(
      std::make_shared<FloatSource>(SampleShape{1, 1, 3},
                                    std::vector<float>{1, 1, 0, 2.5, 0, 1, 3, 0, 0},
                                    std::vector<int32_t>{0, 1, 0}),
      std::vector<int64_t>{2, 1});
  const std::vector<Mistake> mistakes = {{1, 1, 0, 0.75}, {0, 0, 1, 0.5}};
  EXPECT_EQ(MistakesJson(data, mistakes).Text(),
            R"({"columns":["x","colour"],"mistakes":[)"
            R"({"sample":"1","label":"yes","prediction":"no","probability":0.75,)"
            R"("fields":["2.5","blue"]},)"
            R"({"sample":"2","label":"no","prediction":"yes","probability":0.5,)"
            R"("fields":["3",""]}]})");
}

TEST(MistakesJson, PicturesAreAPartOfIt) {
  DataSet data{.name = "p", .shape = {2, 2, 1}, .classes = {"a", "b"}};
  data.test = std::make_unique<ByteSource>(
      SampleShape{2, 2, 1}, std::vector<uint8_t>{0, 50, 100, 255}, 0, std::vector<int32_t>{0});
  const std::vector<Mistake> mistakes = {{0, 0, 1, 0.9}};
  const Json json = MistakesJson(data, mistakes);
  EXPECT_EQ(json.Find("columns"), nullptr);
  const std::string picture = json.At("mistakes").Items()[0].At("picture").AsString();
  EXPECT_EQ(picture.find(Base64("\x89PNG\r\n").substr(0, 7)), 0u);
}

}  // namespace
}  // namespace trireme
