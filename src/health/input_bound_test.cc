#include "health/input_bound.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

// A pipeline that is simulated step by step: `threads` fetch step i + 1 while step i computes.
InputLoad Simulate(int threads, double compute_s, double fetch_s, double cpu_share, int cores) {
  constexpr int kSteps = 100;
  InputLoad load{.steps = kSteps, .compute_threads = 1, .cores = cores, .picture_size = 224};
  double now = 0, ready = threads ? fetch_s / threads : 0;
  for (int i = 0; i < kSteps; ++i) {
    const double wait = threads ? std::max(0.0, ready - now) : fetch_s;
    load.waited_s += wait;
    now += wait;
    if (threads) ready = std::max(now, ready) + fetch_s / threads;
    now += compute_s;
  }
  load.seconds = now;
  load.loader = {.threads = threads,
                 .requests = kSteps,
                 .decode = kSteps * fetch_s,
                 .cpu = kSteps * fetch_s * cpu_share};
  return load;
}

// Sleeping threads need no cores: what is predicted is what a run with so many threads takes.
TEST(InputBound, PredictsWhatOtherNumbersOfThreadsTake) {
  for (const double fetch : {0.03, 0.08, 0.128, 0.4}) {
    for (const int now : {0, 1, 2, 3}) {
      const InputLoad load = Simulate(now, 0.05, fetch, 0, 2);
      for (const int then : {1, 2, 3, 5, 9}) {
        const double taken = Simulate(then, 0.05, fetch, 0, 2).seconds;
        EXPECT_NEAR(PredictSeconds(load, then, load.loader), taken, 0.03 * taken)
            << fetch << " s, " << now << " threads, then " << then;
      }
    }
  }
}

// With three, fetching would take 43 of 50 ms: too close to never hold up a step.
TEST(InputBound, SuggestsTheFewestThreadsThatAreEnough) {
  const auto found = FindInputBound(Simulate(1, 0.05, 0.128, 0, 2));
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->share, 1 - 50 / 128.0, 0.01);
  EXPECT_EQ(found->stage, "decode");
  EXPECT_EQ(found->threads, 4);
  EXPECT_NEAR(found->step_seconds, 0.128, 0.002);
  EXPECT_NEAR(found->step_seconds_without, 0.05, 0.001);
  EXPECT_NEAR(found->step_seconds_threads, 0.05, 0.001);
  EXPECT_NE(found->text.find("input bound: 61 %"), std::string::npos) << found->text;
  EXPECT_NE(found->text.find("data.threads = 4 instead of 1"), std::string::npos) << found->text;
  EXPECT_NE(found->text.find("2.6 times as fast"), std::string::npos) << found->text;
}

// One core computes, one decodes all the time: a third thread finds none.
TEST(InputBound, ThreadsDoNotHelpWhereTheCoresAreBusy) {
  const InputLoad load = Simulate(1, 0.05, 0.07, 1, 1);
  const auto found = FindInputBound(load);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->threads, 1);
  EXPECT_NE(found->text.find("trireme data pack --size 256"), std::string::npos) << found->text;
  EXPECT_EQ(found->text.find("data.threads"), std::string::npos) << found->text;

  // Two cores: computing leaves 5 of 55 ms of one of them.
  const InputLoad two = Simulate(1, 0.05, 0.1, 1, 2);
  EXPECT_NEAR(PredictSeconds(two, 4, two.loader) / two.seconds, 0.75, 0.01);
}

TEST(InputBound, SaysThatThreadsWereAdded) {
  InputLoad load = Simulate(1, 0.05, 0.128, 0, 2);
  load.loader.threads = 4;  // by now
  const auto found = FindInputBound(load);
  ASSERT_TRUE(found);
  EXPECT_NE(found->text.find("with the present 4 threads: 50 ms a step"), std::string::npos)
      << found->text;
  EXPECT_EQ(found->text.find("data.threads"), std::string::npos) << found->text;
}

TEST(InputBound, SaysNothingWhereTrainingHardlyWaits) {
  EXPECT_FALSE(FindInputBound(Simulate(2, 0.05, 0.09, 0, 2)));
  EXPECT_FALSE(FindInputBound(Simulate(0, 0.05, 0.002, 1, 2)));      // 4 %
  EXPECT_FALSE(FindInputBound(Simulate(0, 0.0001, 0.00005, 1, 2)));  // a third, of microseconds
  EXPECT_FALSE(FindInputBound({}));
  EXPECT_TRUE(FindInputBound(Simulate(0, 0.05, 0.004, 1, 2)));
}

TEST(InputBound, NamesTheStageThatTakesMost) {
  InputLoad load = Simulate(1, 0.05, 0.128, 0, 2);
  load.loader.read = 2 * load.loader.decode;
  EXPECT_EQ(FindInputBound(load)->stage, "read");
  load.loader.resize = 3 * load.loader.decode;
  EXPECT_EQ(FindInputBound(load)->stage, "resize");
}

TEST(InputBound, EpochsAddUp) {
  const InputLoad one = Simulate(1, 0.05, 0.128, 0.5, 2);
  InputLoad sum;
  for (int i = 0; i < 3; ++i) sum.Add(one);
  const auto all = FindInputBound(sum), each = FindInputBound(one);
  ASSERT_TRUE(all && each);
  EXPECT_NEAR(all->share, each->share, 1e-12);
  EXPECT_NEAR(all->step_seconds_threads, each->step_seconds_threads, 1e-12);
  EXPECT_EQ(all->text, each->text);
}

}  // namespace
}  // namespace trireme
