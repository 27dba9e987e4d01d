#include "data/survey.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/label.h"
#include "data/memory_source.h"

namespace trireme {
namespace {

// Rows of two values; one that is called broken cannot be read.
class Rows : public FloatSource {
 public:
  Rows(std::vector<float> values, std::vector<int32_t> labels, int64_t broken = -1)
      : FloatSource({1, 1, 2}, std::move(values), std::move(labels)), broken_(broken) {}
  void Read(int64_t index, std::span<float> out) const override {
    if (index == broken_) throw Error("row {} is broken", index);
    FloatSource::Read(index, out);
  }

 private:
  const int64_t broken_;
};

DataSet Made() {
  DataSet data{.name = "made", .shape = {1, 1, 2}, .classes = {"a", "b"}};
  // Row 2 repeats row 0 with another label.
  data.train = std::make_unique<Rows>(std::vector<float>{1, 2, 3, 4, 1, 2, 5, 6},
                                      std::vector<int32_t>{0, 1, 1, 1});
  data.test = std::make_unique<Rows>(std::vector<float>{3, 4, 9, 9, 3, 4, 0, 0},
                                     std::vector<int32_t>{1, 0, 1, 0}, 3);
  return data;
}

TEST(Survey, CountsClassesRepeatsAndWhatIsShared) {
  const DataSet data = Made();
  for (const int threads : {1, 3}) {
    const DataSurvey survey = SurveyData(data, threads);
    ASSERT_EQ(survey.parts.size(), 2u);
    const PartSurvey &train = survey.parts[0], &test = survey.parts[1];
    EXPECT_EQ(train.name, "train");
    EXPECT_EQ(train.samples, 4);
    EXPECT_EQ(train.classes, (std::vector<int64_t>{1, 3}));
    EXPECT_EQ(train.repeated, 1);
    EXPECT_EQ(test.repeated, 1);
    EXPECT_EQ(test.in_training, 2);
    EXPECT_EQ(test.broken, std::vector<std::string>{"row 3 is broken"});
    EXPECT_EQ(survey.contradictions, 1);
    EXPECT_EQ(survey.values.channel(0).mean, 2.5);
    EXPECT_EQ(survey.values.channel(1).max, 6);
    EXPECT_NEAR(survey.values.channel(1).squares, 11, 1e-12);  // of 2, 4, 2, 6
  }
}

TEST(Survey, MeasuresNumbersToPredict) {
  DataSet data{.name = "made", .shape = {1, 1, 2}, .task = Task::kRegression};
  data.train = std::make_unique<Rows>(
      std::vector<float>{1, 2, 3, 4, 1, 2},
      std::vector<int32_t>{LabelOfNumber(-1), LabelOfNumber(2.5f), LabelOfNumber(0)});
  const DataSurvey survey = SurveyData(data, 1);
  EXPECT_EQ(survey.parts[0].target.channel(0).mean, 0.5);
  EXPECT_EQ(survey.parts[0].target.channel(0).min, -1);
  EXPECT_EQ(survey.contradictions, 1);
  EXPECT_EQ(SurveyData(data, 0).parts[0].target.channel(0).max, 2.5);
}

TEST(Survey, CountsWithoutReading) {
  const DataSurvey survey = SurveyData(Made(), 0);
  ASSERT_EQ(survey.parts.size(), 2u);
  EXPECT_EQ(survey.parts[1].classes, (std::vector<int64_t>{2, 2}));
  EXPECT_TRUE(survey.parts[1].broken.empty());
}

// Values in many blocks are measured as in one.
TEST(Survey, BlocksAddUp) {
  std::vector<float> values;
  ChannelStatistics whole(2);
  for (int i = 0; i < 5000; ++i) {
    values.push_back(1000 + float(i % 37));
    values.push_back(float(i * i % 101));
    for (int c : {0, 1}) whole.Add(c, values[size_t(2 * i + c)]);
  }
  DataSet data{.name = "made", .shape = {1, 1, 2}, .classes = {"a", "b"}};
  data.train = std::make_unique<Rows>(values, std::vector<int32_t>(5000));
  const DataSurvey survey = SurveyData(data, 2);
  for (int c : {0, 1}) {
    const auto &got = survey.values.channel(c), &want = whole.channel(c);
    EXPECT_NEAR(got.mean, want.mean, 1e-9);
    EXPECT_NEAR(got.squares, want.squares, 1e-6);
    EXPECT_EQ(got.count, want.count);
    EXPECT_EQ(got.min, want.min);
    EXPECT_EQ(got.max, want.max);
  }
}

}  // namespace
}  // namespace trireme
