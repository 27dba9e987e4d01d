#include "data/folds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/random.h"
#include "data/memory_source.h"
#include "data/sources.h"

namespace trireme {
namespace {

// Sample i has the value i, and one of `classes` labels, some much rarer than others.
std::unique_ptr<Source> Numbers(int64_t samples, int classes, uint64_t seed) {
  std::vector<float> values;
  std::vector<int32_t> labels;
  const Random random(seed);
  for (int64_t i = 0; i < samples; ++i) {
    values.push_back(float(i));
    const double u = random.Uniform(uint64_t(i));
    labels.push_back(int32_t(u * u * classes));
  }
  return std::make_unique<FloatSource>(SampleShape{1, 1, 1}, values, labels);
}

std::set<int64_t> IdsOf(const Source& source) {
  std::set<int64_t> ids;
  for (int64_t i = 0; i < source.size(); ++i) {
    float value = 0;
    source.Read(i, std::span(&value, 1));
    EXPECT_TRUE(ids.insert(int64_t(value)).second);
  }
  return ids;
}

TEST(Folds, OfNumbersAreNotStratified) {
  const auto samples = Numbers(101, 50, 3);
  const std::vector<int> folds = FoldsOf(*samples, 4, 1, Task::kRegression);
  for (int fold = 0; fold < 4; ++fold) {
    const auto size = std::count(folds.begin(), folds.end(), fold);
    EXPECT_TRUE(size == 25 || size == 26) << size;
  }
  const FloatSource others({1, 1, 1}, std::vector<float>(101), std::vector<int32_t>(101));
  EXPECT_EQ(folds, FoldsOf(others, 4, 1, Task::kRegression));  // whatever the numbers are
}

TEST(Folds, EverySampleIsTestedInExactlyOneFold) {
  for (const int folds : {2, 3, 5, 10}) {
    for (const int64_t samples : {10, 57, 200}) {
      std::set<int64_t> tested;
      for (int fold = 1; fold <= folds; ++fold) {
        DataSet data;
        data.train = Numbers(samples, 4, 9);
        TakeFold(data, folds, fold, 7);
        const std::set<int64_t> test = IdsOf(*data.test), train = IdsOf(*data.train);
        EXPECT_EQ(int64_t(test.size() + train.size()), samples);
        for (const int64_t id : test) {
          EXPECT_FALSE(train.count(id));
          EXPECT_TRUE(tested.insert(id).second) << id << " is tested twice";
        }
      }
      EXPECT_EQ(int64_t(tested.size()), samples);
    }
  }
}

TEST(Folds, HaveAsManyOfEveryClassUpToOne) {
  const auto source = Numbers(333, 7, 3);
  for (const int folds : {2, 5, 9}) {
    const std::vector<int> fold_of = FoldsOf(*source, folds, 1);
    std::map<int, std::vector<int>> counts;  // by class; -1: of all
    for (int64_t i = 0; i < source->size(); ++i) {
      for (const int of : {-1, int(source->label(i))}) {
        counts[of].resize(size_t(folds));
        ++counts[of][size_t(fold_of[size_t(i)])];
      }
    }
    for (const auto& [label, of] : counts) {
      const auto [least, most] = std::minmax_element(of.begin(), of.end());
      EXPECT_LE(*most - *least, 1) << "class " << label;
    }
  }
}

TEST(Folds, AreAFunctionOfTheSeed) {
  const auto source = Numbers(100, 3, 3);
  EXPECT_EQ(FoldsOf(*source, 5, 1), FoldsOf(*source, 5, 1));
  EXPECT_NE(FoldsOf(*source, 5, 1), FoldsOf(*source, 5, 2));
}

TEST(Folds, ASourcesOwnTestPartIsLeftAlone) {
  DataOptions options;
  options.source = "synthetic:4x4x1:3:100";
  options.folds = 4;
  int64_t tested = 0;
  for (options.fold = 1; options.fold <= 4; ++options.fold) {
    const DataSet data = OpenData(options, 0);
    EXPECT_EQ(data.train->size() + data.test->size(), 100);
    tested += data.test->size();
  }
  EXPECT_EQ(tested, 100);
}

TEST(Folds, RefusesWhatCannotBe) {
  const auto open = [](int folds, int fold, double fraction = -1) {
    DataOptions options;
    options.folds = folds;
    options.fold = fold;
    options.test_fraction = fraction;
    OpenData(options, 0);
  };
  EXPECT_NO_THROW(open(150, 150));
  EXPECT_THROW(open(151, 1), UsageError);
  EXPECT_THROW(open(1, 1), UsageError);
  EXPECT_THROW(open(5, 6), UsageError);
  EXPECT_THROW(open(5, 0), UsageError);
  EXPECT_THROW(open(5, 1, 0.3), UsageError);
}

}  // namespace
}  // namespace trireme
