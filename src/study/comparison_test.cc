#include "study/comparison.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "study/link_words.h"

namespace trireme {
namespace {

constexpr const char* kSummary =
    R"({"strategy":"easgd","ranks":5,"test_accuracy":0.9,"test_loss":0.3,"train_seconds":4.0,
        "samples_per_second":50.0,"steps":100,"staleness_mean":1.5,"staleness_max":7})";
constexpr const char* kEpochs =
    R"({"event":"step","step":3}
{"event":"epoch","seconds":1.0,"samples_per_second":100.0,"train_loss":0.5,"test_loss":0.4,"test_accuracy":0.8,"bytes_sent":10,"bytes_received":30}
{"event":"epoch","seconds":3.0,"samples_per_second":33.333333333,"train_loss":0.25,"bytes_sent":1,"bytes_received":1,"ranks":[{"bytes_sent":100},{"bytes_sent":50}]}
)";

TEST(Comparison, ReadsWhatARunLeft) {
  const TemporaryDirectory folder;
  ReplaceFile(folder / "summary.json", kSummary);
  ReplaceFile(folder / "metrics.jsonl", kEpochs);
  const ComparedRun run = ReadComparedRun(folder / "", 4, true);
  EXPECT_EQ(run.strategy, "easgd");
  EXPECT_EQ(run.ranks, 5);
  EXPECT_DOUBLE_EQ(run.updates_per_second, 100);  // 100 steps of 4 workers in 4 s
  EXPECT_DOUBLE_EQ(ReadComparedRun(folder / "", 4, false).updates_per_second, 25);
  EXPECT_DOUBLE_EQ(*run.staleness_mean, 1.5);
  EXPECT_DOUBLE_EQ(*run.staleness_most, 7);
  ASSERT_EQ(run.points.size(), 2u);
  EXPECT_DOUBLE_EQ(run.points[1].seconds, 4);
  EXPECT_EQ(run.points[1].samples, 200);
  EXPECT_EQ(run.points[0].bytes, 40);
  EXPECT_EQ(run.bytes, 190);  // of all ranks, where all are there
  EXPECT_DOUBLE_EQ(*run.points[0].test_accuracy, 0.8);
  EXPECT_FALSE(run.points[1].test_accuracy);
}

TEST(Comparison, SaysWhatAFileLacks) {
  const TemporaryDirectory folder;
  ReplaceFile(folder / "summary.json", R"({"strategy":"easgd"})");
  EXPECT_THROW(ReadComparedRun(folder / "", 4, true), Error);
}

TEST(Comparison, AFailedStrategyIsARow) {
  const std::vector<ComparedRun> runs = {
      {.strategy = "allreduce",
       .workers = 2,
       .points = {{.seconds = 1.5, .samples = 10, .bytes = 7, .test_accuracy = 0.5}},
       .test_accuracy = 0.5,
       .train_seconds = 1.5},
      {.strategy = "easgd", .error = "the wire broke"}};
  const std::string table = ComparisonTable(runs);
  EXPECT_NE(table.find("50.00 %"), table.npos) << table;
  EXPECT_NE(table.find("easgd     failed: the wire broke"), table.npos) << table;
  EXPECT_EQ(ComparisonCsv(runs),
            "strategy,epoch,seconds,samples,bytes,train_loss,test_loss,test_accuracy\n"
            "allreduce,1,1.5,10,7,,,0.5\n");
  const Json json = ParseJson(ComparisonJson(runs).Text(), "json");
  EXPECT_EQ(json.Items()[1].At("error").AsString(), "the wire broke");
  EXPECT_EQ(json.Items()[0].At("points").Items()[0].At("samples").AsInt(), 10);
}

TEST(LinkWords, AreARateAndALatency) {
  EXPECT_DOUBLE_EQ(ParseLink("1Gbit/s").bytes_per_s, 1.25e8);
  EXPECT_DOUBLE_EQ(ParseLink("1Gbit/s").latency_ms, 0);
  EXPECT_DOUBLE_EQ(ParseLink("200 MB/s, 50us").bytes_per_s, 2e8);
  EXPECT_DOUBLE_EQ(ParseLink("200MB/s,50us").latency_ms, 0.05);
  EXPECT_DOUBLE_EQ(ParseLink("100Mbit/s,5ms").latency_ms, 5);
  for (const char* bad : {"", "5ms", "1Gbit", "-1GB/s", "0MB/s", "1GB/s,5", "1GB/s,5ms,6ms"}) {
    EXPECT_THROW(ParseLink(bad), UsageError) << bad;
  }
}

}  // namespace
}  // namespace trireme
