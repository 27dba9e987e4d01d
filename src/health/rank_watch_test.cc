#include "health/rank_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "strategy/step/tags.h"
#include "transport/collective/broadcast.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

using namespace std::chrono_literals;

// Ranks that meet in steps, each with a watch.
struct Watched {
  std::string error;  // of the job; empty: none
  std::string log;
};

using Act = std::function<void(int rank, int64_t step, std::atomic<bool>& given_up)>;

Watched RunWatched(int ranks, double stall_s, int64_t steps, const Act& act) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/log";
  FILE* file = std::fopen(path.c_str(), "w");
  Watched result;
  {
    LogOutput output(fileno(file));
    const Log log(output);
    try {
      RunRanks(ranks, 3600, [&](World& world) {
        std::atomic<bool> given_up = false;
        Group& group = world.group();
        RankWatch watch({group, stall_s, log, [&] { given_up = true; }});
        try {
          watch.Start();
          RankShare totals;
          for (int64_t step = 0; step < steps; ++step) {
            watch.status().Set(Phase::kCompute, step);
            const double began = Now();
            act(world.rank(), step, given_up);
            totals.compute += Now() - began;
            watch.status().Set(Phase::kReduce, step);
            const double arrived = Now();
            Barrier(group, kTagScore);
            totals.waited += Now() - arrived;
            if (watch.wants()) watch.Publish(totals, step);
          }
          watch.End();
        } catch (const std::exception& error) {
          group.Abort(error.what());
          if (const auto verdict = watch.Verdict(error); !verdict.empty()) throw Error(verdict);
          throw;
        }
      });
    } catch (const std::exception& error) {
      result.error = error.what();
    }
  }
  std::fclose(file);
  result.log = ReadFile(path);
  return result;
}

void Sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

TEST(RankWatch, NamesARankThatNeverComes) {
  for (const int culprit : {0, 2}) {
    const Watched run =
        RunWatched(3, 1, 100, [&](int rank, int64_t step, std::atomic<bool>& given_up) {
          while (rank == culprit && step == 5 && !given_up) Sleep(0.01);
        });
    EXPECT_NE(
        run.error.find(fmt::format("rank {} never reached the all-reduce of step 5", culprit)),
        std::string::npos)
        << run.error;
    EXPECT_NE(run.log.find(fmt::format(
                  "rank 1 has been waiting for rank {} in the all-reduce of step 5", culprit)),
              std::string::npos)
        << run.log;
    EXPECT_NE(run.log.find(fmt::format("rank {} has been computing step 5", culprit)),
              std::string::npos)
        << run.log;
    EXPECT_NE(run.log.find(fmt::format("rank {} did not return", culprit)), std::string::npos)
        << run.log;
  }
}

TEST(RankWatch, StepsShorterThanTheLimitRaiseNoAlarm) {
  const Watched run = RunWatched(3, 20, 5, [&](int rank, int64_t, std::atomic<bool>&) {
    if (rank == 1) Sleep(0.9);
  });
  EXPECT_EQ(run.error, "");
}

TEST(RankWatch, ALateRankIsNamedWithinTenSeconds) {
  const Watched run = RunWatched(
      3, 0, 50, [&](int rank, int64_t, std::atomic<bool>&) { Sleep(rank == 2 ? 0.2 : 0.05); });
  EXPECT_EQ(run.error, "");
  EXPECT_NE(run.log.find("rank 2 is a straggler: "), std::string::npos) << run.log;
  EXPECT_NE(run.log.find("of each step for its compute"), std::string::npos) << run.log;
}

TEST(RankWatch, ManyShortLivesEnd) {
  for (int i = 0; i < 20; ++i) {
    const Watched run = RunWatched(4, 60, 3, [](int, int64_t, std::atomic<bool>&) {});
    EXPECT_EQ(run.error, "");
    EXPECT_EQ(run.log, "");
  }
}

// Nobody waits for the alarm, which would come later than this test may take.
TEST(RankWatch, AnErrorOfARankIsNotHeldUp) {
  const Watched run = RunWatched(3, 3600, 100, [](int rank, int64_t step, std::atomic<bool>&) {
    if (rank == 1 && step == 50) throw Error("broken");
  });
  EXPECT_NE(run.error.find("broken"), std::string::npos);
}

}  // namespace
}  // namespace trireme
