// Where the time went, who is late, who never comes, and the trace of it.
#include <algorithm>
#include <map>
#include <set>

#include "support/ranks_test.h"

namespace trireme::whole {
namespace {

class WatchTest : public WholeTest {
 protected:
  void ExpectIn(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in:\n" << text;
  }
};

TEST_F(WatchTest, EachRanksTimesStandInTheEpochLine) {
  for (const Transport& transport : Transports(StartsItself)) {
    SCOPED_TRACE(transport);
    Succeed(
        {"train", "--ranks", "3", "--transport", transport, "--epochs", "2", "--out", transport});
    const auto epochs = Epochs(transport);
    ASSERT_EQ(epochs.size(), 2u);
    const double seconds = epochs[1].At("seconds").AsDouble();
    const auto& ranks = epochs[1].At("ranks").Items();
    ASSERT_EQ(ranks.size(), 3u);
    for (size_t r = 0; r < 3; ++r) {
      EXPECT_EQ(ranks[r].At("rank").AsInt(), int64_t(r));
      EXPECT_GT(ranks[r].At("forward").AsDouble(), 0);
      EXPECT_GT(ranks[r].At("communication_waited").AsDouble(), 0);
      EXPECT_GE(ranks[r].At("communication_hidden").AsDouble(), 0);
      EXPECT_LE(ranks[r].At("communication_hidden").AsDouble(), seconds);
      EXPECT_GT(ranks[r].At("bytes_sent").AsInt(), 0);
      EXPECT_GT(ranks[r].At("bytes_received").AsInt(), 0);
    }
    EXPECT_EQ(ranks[0].At("forward").AsDouble(), epochs[1].At("times").At("forward").AsDouble());
  }
}

TEST_F(WatchTest, ARankThatNeverComesIsNamedAndTheRunFails) {
  for (const Transport& transport : Transports(StartsItself)) {
    for (const char* rank : {"0", "2"}) {
      SCOPED_TRACE(std::string(transport) + " " + rank);
      const Outcome run = Run({"train", "--ranks", "3", "--transport", transport, "--set",
                               std::string("emulate.hang=") + rank + ":40", "--set",
                               "trainer.stall_seconds=6", "--trace", "t.json"});
      EXPECT_EQ(run.exit_code, 1);
      const std::string name = std::string("rank ") + rank;
      ExpectIn(run.err, "rank 1 has been waiting for " + name + " in the all-reduce of step 40");
      ExpectIn(run.err, name + " has been computing step 40");
      ExpectIn(run.err, name + " never reached the all-reduce of step 40");
    }
  }
  const Json rescued = ParseJson(Read("t.json.rank1"), "t.json.rank1");
  EXPECT_GT(rescued.At("traceEvents").Items().size(), 5u);
}

TEST_F(WatchTest, ARankWithOneFlippedBitIsNamedWithItsTensor) {
  for (const Transport& transport : Transports(StartsItself)) {
    SCOPED_TRACE(transport);
    const Outcome run =
        Run({"train", "--ranks", "3", "--transport", transport, "--set", "emulate.flip=1:12",
             "--set", "trainer.check_steps=5", "--quiet", "--out", transport});
    EXPECT_EQ(run.exit_code, 1);
    ExpectIn(run.err, "after step 15 rank 1's weights differ from rank 0's, first in ");
  }
  Succeed({"train", "--ranks", "3", "--set", "trainer.check_steps=5", "--quiet", "--out", "clean"});
}

// Slow by so much that what a busy machine does to the others is little beside it.
TEST_F(WatchTest, ASlowRankIsNamedWithItsReason) {
  const Outcome run = Succeed({"train", "--ranks", "3", "--transport", "shm", "--set",
                               "emulate.slow=1:80", "--epochs", "8", "--out", "a"});
  ExpectIn(run.err, "emulate.slow = 1:80");
  std::string late;  // of all epochs
  for (const Json& epoch : Epochs("a")) {
    if (const Json* who = epoch.Find("late")) late += who->AsString() + "\n";
  }
  ExpectIn(late, "rank 1 is a straggler: ");
  ExpectIn(late, " of each step for its compute");
  EXPECT_EQ(Epochs("a").front().Find("late"), nullptr);
  EXPECT_EQ(Summary("a").At("emulated").At("slow").AsString(), "1:80");
  EXPECT_GT(Epochs("a")[1].At("ranks").Items()[1].At("forward").AsDouble(), 15 * 0.079);
}

// Nobody is missing. That nobody is called late for a while of noise: src/health/straggler_test.cc;
// on a machine that others use, one may be late indeed.
TEST_F(WatchTest, CleanRunsMissNobody) {
  for (int i = 0; i < 8; ++i) {
    const std::string out = std::to_string(i);
    const Outcome run = Succeed({"train", "--ranks", i % 2 ? "3" : "2", "--transport",
                                 i % 4 < 2 ? "threads" : "shm", "--set", "trainer.stall_seconds=20",
                                 "--seed", out, "--out", out});
    EXPECT_EQ(run.err.find(" waiting for rank "), std::string::npos) << run.err;
    EXPECT_EQ(Summary(out).Find("emulated"), nullptr);
  }
}

TEST_F(WatchTest, TheTraceShowsAllRanksOnOneClock) {
  for (const char* transport : {"threads", "tcp"}) {
    Succeed({"train", "--ranks", "2", "--transport", transport, "--trace", "t.json", "--epochs",
             "2", "--batch", "60", "--deterministic", "--set", "emulate.slow=0:500", "--set",
             "record.trace_mb=2"});
    const Json trace = ParseJson(Read("t.json"), "t.json");
    EXPECT_LT(Read("t.json").size(), 2100000u);
    std::map<int64_t, std::set<std::string>> names;
    std::map<std::pair<int64_t, int64_t>, double> forward_ends, agree_ends;  // by step and rank
    for (const Json& event : trace.At("traceEvents").Items()) {
      const int64_t rank = event.At("pid").AsInt();
      names[rank].insert(event.At("name").AsString());
      const std::string name = event.At("name").AsString();
      if (name != "forward" && name != "agree") continue;
      (name == "forward" ? forward_ends : agree_ends)[{event.At("args").At("step").AsInt(), rank}] =
          event.At("ts").AsDouble() + event.At("dur").AsDouble();
    }
    ASSERT_EQ(names.size(), 2u);
    for (const char* name : {"data", "forward", "backward", "agree", "update", "evaluation",
                             "reduce bucket", "thread_name", "process_name"}) {
      EXPECT_TRUE(names[0].contains(name) && names[1].contains(name)) << name;
    }
    EXPECT_TRUE(names[0].contains("checkpoint"));
    // No rank has the sum before all have computed: the clocks agree, to less than the slow one
    // takes.
    ASSERT_EQ(forward_ends.size(), 2 * 4u);
    for (const auto& [at, end] : forward_ends) {
      const auto& [step, rank] = at;
      ASSERT_TRUE(agree_ends.contains({step, 1 - rank}));
      EXPECT_GT((agree_ends[{step, 1 - rank}]), end - 0.25e6) << "step " << step;
      EXPECT_LT((agree_ends[{step, 1 - rank}]), end + 60e6) << "step " << step;
    }
  }
}

// One thread fetches the samples of all workers: how many lie ready is a counter of the first rank,
// and how long it waited because its queue was full is in the metrics.
TEST_F(WatchTest, TheQueueOfTheDataGeneratorIsShown) {
  Succeed({"train", "--ranks", "3", "--strategy", "bsp", "--trace", "t.json", "--epochs", "2",
           "--batch", "12", "--set", "emulate.step_ms=20", "--out", "a"});
  const Json trace = ParseJson(Read("t.json"), "t.json");
  int64_t counted = 0, most = 0;
  for (const Json& event : trace.At("traceEvents").Items()) {
    if (event.At("ph").AsString() != "C") continue;
    EXPECT_EQ(event.At("pid").AsInt(), 0);
    EXPECT_EQ(event.At("name").AsString(), "samples ready");
    most = std::max(most, event.At("args").At("samples").AsInt());
    ++counted;
  }
  EXPECT_GT(counted, 20);
  EXPECT_GT(most, 0);
  EXPECT_LE(most, 2 * 12);  // two steps
  const auto epochs = Epochs("a");
  ASSERT_EQ(epochs.at(1).At("ranks").Items().size(), 3u);
  for (const Json& rank : epochs[1].At("ranks").Items()) {
    EXPECT_EQ(rank.At("loader").At("threads").AsInt(), 1);
    EXPECT_GT(rank.At("loader").At("queue_full").AsDouble(), 0);
  }
}

TEST_F(WatchTest, WhatCannotBePretendedIsRefused) {
  Refuse({"train", "--ranks", "2", "--set", "emulate.slow=2:5"}, 2, {"emulate.slow", "2 ranks"});
  Refuse({"train", "--set", "emulate.hang=now"}, 2, {"emulate.hang", "RANK:NUMBER"});
  Refuse({"train", "--set", "trainer.stall_seconds=-1"}, 2, {"trainer.stall_seconds"});
}

}  // namespace
}  // namespace trireme::whole
