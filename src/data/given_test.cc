#include "data/given.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/label.h"
#include "data/sources.h"

namespace trireme {
namespace {

DataOptions Options() { return {.source = kGivenSource}; }

struct Memory {
  std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  std::vector<uint8_t> bytes = {0, 51, 102, 153, 204, 255, 0, 51, 102, 153};
  std::vector<int32_t> labels = {0, 1, 2, 1, 0};
  std::vector<float> numbers = {0.5f, -1, 2, 3, 4};
  GivenSamples given{.shape = {1, 1, 2}, .train = {.values = values, .labels = labels}};
};

// The words of a refusal; empty if there was none.
std::string Refused(const GivenSamples& given, const DataOptions& options = Options()) {
  try {
    OpenGiven(given, options);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Given, ValuesAreBorrowedAndClassesNamedByTheirNumbers) {
  Memory memory;
  const DataSet data = OpenGiven(memory.given, Options());
  EXPECT_EQ(data.task, Task::kClassification);
  EXPECT_EQ(data.classes, (std::vector<std::string>{"0", "1", "2"}));
  ASSERT_EQ(data.train->size(), 5);
  EXPECT_EQ(data.test, nullptr);
  memory.values[2] = 30;  // seen, because nothing was copied
  std::vector<float> sample(2);
  data.train->Read(1, sample);
  EXPECT_EQ(sample, (std::vector<float>{30, 4}));
  EXPECT_EQ(data.train->label(2), 2);
}

TEST(Given, BytesCountAsSharesOf255) {
  Memory memory;
  memory.given.train = {.bytes = memory.bytes, .labels = memory.labels};
  const DataSet data = OpenGiven(memory.given, Options());
  EXPECT_TRUE(data.train->has_bytes());
  std::vector<float> sample(2);
  data.train->Read(2, sample);
  EXPECT_FLOAT_EQ(sample[0], 0.8f);
  EXPECT_FLOAT_EQ(sample[1], 1);
}

TEST(Given, NumbersTravelAsLabels) {
  Memory memory;
  memory.given.train = {.values = memory.values, .numbers = memory.numbers};
  const DataSet data = OpenGiven(memory.given, Options());
  EXPECT_EQ(data.task, Task::kRegression);
  EXPECT_TRUE(data.classes.empty());
  EXPECT_EQ(NumberOfLabel(data.train->label(1)), -1);
}

TEST(Given, IsDividedLikeAnyOtherSource) {
  Memory memory;
  DataOptions options = Options();
  options.test_fraction = 0.4;
  options.validation_fraction = 0.3;
  const DataSet data = DivideData(OpenGiven(memory.given, options), options, 1);
  EXPECT_EQ(data.test->size(), 2);
  EXPECT_EQ(data.validation->size() + data.train->size(), 3);
  // Not where a part is there already.
  memory.given.test = memory.given.train;
  EXPECT_THROW(DivideData(OpenGiven(memory.given, options), options, 1), UsageError);
}

TEST(Given, WhatContradictsItselfIsRefused) {
  const auto refused = [](auto change) {
    Memory memory;
    change(memory, memory.given);
    return Refused(memory.given);
  };
  using M = Memory;
  using G = GivenSamples;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(refused([](M&, G& g) { g.train = {}; }), "there are no samples to train");
  EXPECT_EQ(refused([](M&, G& g) { g.shape.height = 0; }),
            "a shape of 0x1x2 holds no sample; height, width and channels count from 1");
  EXPECT_EQ(refused([](M&, G& g) { g.shape.channels = 3; }),
            "the samples to train have 10 values, no multiple of 3 (1x1x3)");
  EXPECT_EQ(refused([](M& m, G& g) { g.train.bytes = m.bytes; }),
            "the samples to train have values and bytes; give one of them");
  EXPECT_EQ(refused([](M&, G& g) { g.train.values = {}; }), "the samples to train have no values");
  EXPECT_EQ(refused([](M&, G& g) { g.train.labels = {}; }),
            "the samples to train need either labels or numbers");
  EXPECT_EQ(refused([](M& m, G& g) { g.train.numbers = m.numbers; }),
            "the samples to train need either labels or numbers; they have both");
  EXPECT_EQ(refused([](M& m, G& g) {
              g.test = {.values = m.values, .labels = std::span(m.labels).first(4)};
            }),
            "there are 5 samples to test, but 4 labels");
  EXPECT_EQ(refused([](M& m, G& g) { g.test = {.values = m.values, .numbers = m.numbers}; }),
            "the samples to test and those to train need the same: labels or numbers");
  EXPECT_EQ(refused([](M&, G& g) {
              g.classes = {"a", "b"};
            }),
            "the label of sample 2 to train is 2; with 2 classes labels are 0 to 1");
  EXPECT_EQ(refused([](M& m, G&) { m.labels[4] = -1; }),
            "the label of sample 4 to train is -1; with 3 classes labels are 0 to 2");
  EXPECT_EQ(refused([&](M& m, G&) { m.values[5] = nan; }),
            "value 1 of sample 2 to train is nan; all must be finite");
  EXPECT_EQ(refused([](M& m, G& g) {
              g.train = {.values = m.values, .numbers = m.numbers};
              g.classes = {"a"};
            }),
            "the samples have numbers to predict, and so no names of classes");
  DataOptions options = Options();
  options.task = "regression";
  EXPECT_EQ(Refused(Memory().given, options),
            "data.task = regression, but the samples have labels");
}

TEST(Given, WithoutTheMemoryNothingIsOpened) {
  try {
    OpenData(Options(), 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("--data csv:FILE"), std::string::npos);
  }
}

}  // namespace
}  // namespace trireme
