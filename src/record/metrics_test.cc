#include "record/metrics.h"

#include <gtest/gtest.h>

#include <set>

namespace trireme {
namespace {

TEST(Metrics, AnEpochLeavesOutWhatWasNotMeasured) {
  EpochRecord record{.epoch = 2, .step = 100, .train_loss = 0.5, .lr = 0.1};
  const RankRecord before{0, {.data = 1, .hidden = 1}, 3, 0};
  const RankRecord now{
      0, {.data = 3, .forward = 4, .backward = 6, .communication = 8, .update = 10}, 10, 0};
  record.times = now.Since(before).times;
  record.bytes_sent = now.Since(before).bytes_sent;
  const Json json = ToJson(record);
  EXPECT_EQ(json.At("event").AsString(), "epoch");
  EXPECT_EQ(json.At("train_loss").AsDouble(), 0.5);
  EXPECT_EQ(json.Find("test_loss"), nullptr);
  EXPECT_EQ(json.At("times").Text(),
            R"({"data":2.0,"forward":4.0,"backward":6.0,"communication":8.0,"update":10.0})");
  EXPECT_EQ(json.At("bytes_sent").AsInt(), 7);
  EXPECT_EQ(record.times.Total(), 30);
  EXPECT_EQ(record.times.hidden, 0);
}

// The list of DESIGN.md, "Names that users and scripts rely on".
TEST(Metrics, TheSummaryHasTheNamesThatScriptsRelyOn) {
  const Json empty = ToJson(Summary{});
  for (const char* key : {"test_accuracy",
                          "test_top5",
                          "test_loss",
                          "train_loss",
                          "confusion",
                          "parameters_sha256",
                          "samples_per_second",
                          "seconds",
                          "epochs",
                          "steps",
                          "ranks",
                          "strategy",
                          "transport",
                          "device",
                          "precision",
                          "machine",
                          "version",
                          "commit",
                          "classes",
                          "per_class_accuracy",
                          "per_class_precision",
                          "per_class_recall",
                          "per_class_f1",
                          "per_class_auc",
                          "macro_precision",
                          "macro_recall",
                          "macro_f1",
                          "macro_auc",
                          "auc_error",
                          "roc"}) {
    EXPECT_NE(empty.Find(key), nullptr) << key;
  }
  EXPECT_TRUE(empty.At("test_accuracy").IsNull());
  std::set<std::string> names;
  for (const auto& [key, value] : empty.Members()) EXPECT_TRUE(names.insert(key).second) << key;
}

TEST(Metrics, PerClassAccuracyComesFromTheConfusion) {
  Summary summary;
  summary.confusion = {{3, 1, 0}, {0, 0, 0}, {1, 1, 2}};
  summary.classes = {"a", "b", "c"};
  const Json json = ToJson(summary);
  EXPECT_EQ(json.At("per_class_accuracy").Text(), "[0.75,null,0.5]");
  EXPECT_EQ(json.At("confusion").Text(), "[[3,1,0],[0,0,0],[1,1,2]]");
  EXPECT_EQ(json.At("classes").Text(), R"(["a","b","c"])");
}

TEST(Metrics, PartsFitIntoTheWhole) {
  const StepTimes times{.data = 1, .forward = 2, .backward = 4, .update = 1, .hidden = 3};
  EXPECT_EQ(times.Within(9).Total(), 8);
  const StepTimes half = times.Within(4);
  EXPECT_DOUBLE_EQ(half.Total(), 4);
  EXPECT_DOUBLE_EQ(half.backward, 2);
  EXPECT_EQ(half.hidden, 3);
}

}  // namespace
}  // namespace trireme
