#include "base/team.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <numeric>
#include <stdexcept>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "base/machine.h"

namespace trireme {
namespace {

TEST(Team, EveryThreadWorksOncePerRun) {
  for (int threads : {1, 2, 3, 7}) {
    Team team(threads);
    ASSERT_EQ(team.size(), threads);
    std::vector<int> calls(threads, 0);  // each entry belongs to one thread
    for (int run = 0; run < 200; ++run) team.Run([&](int thread) { ++calls[thread]; });
    EXPECT_EQ(calls, std::vector<int>(threads, 200));
  }
}

TEST(Team, WorkOfOneRunIsSeenByTheNext) {
  Team team(3);
  std::vector<int> values(3, 0);
  for (int run = 0; run < 300; ++run) {
    std::vector<int> next(3);
    team.Run([&](int thread) { next[thread] = values[(thread + 1) % 3] + 1; });
    values = next;
  }
  EXPECT_EQ(values, std::vector<int>(3, 300));
}

TEST(Team, WakesWorkersThatSleep) {
  Team team(4);
  for (int run = 0; run < 5; ++run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    std::atomic<int> sum{0};
    team.Run([&](int thread) { sum += thread; });
    EXPECT_EQ(sum, 6);
  }
}

TEST(Team, IdleTeamBurnsNoTime) {
  Team team(4);
  team.Run([](int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const auto used = [] {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
  };
  const double before = used();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_LT(used() - before, 0.05);
}

TEST(Team, ThrowsWhatAThreadThrewAndGoesOn) {
  Team team(3);
  for (int culprit = 0; culprit < 3; ++culprit) {
    EXPECT_THROW(team.Run([&](int thread) {
      if (thread == culprit) throw std::runtime_error("lost");
    }),
                 std::runtime_error);
    std::atomic<int> runs{0};
    team.Run([&](int thread) { runs += thread; });
    EXPECT_EQ(runs, 3);  // 0 + 1 + 2
  }
}

// A limit on the address space, which holds for every user: stacks of threads lie in it. In a
// child, because a limit cannot be raised again.
int MessageUnderALimit() {
  const std::string status = ReadFile("/proc/self/status");
  const auto held = rlim_t(ParseMeminfo(status, "VmSize"));
  const rlimit little{held + (rlim_t{100} << 20), RLIM_INFINITY};
  if (held == 0 || setrlimit(RLIMIT_AS, &little) != 0) return 2;
  try {
    Team team(1000);
    return 3;
  } catch (const Error& error) {
    const std::string text = error.what();
    const bool right = text.starts_with("cannot start thread ") &&
                       text.find(" of 1000: Resource temporarily unavailable") != text.npos &&
                       text.find("ulimit -u") != text.npos &&
                       text.find("trainer.threads") != text.npos;
    return right ? 0 : 4;
  }
}

TEST(Team, ThatCannotStartAThreadSaysSoAndDoesNotWait) {
  const pid_t child = fork();
  if (child == 0) _exit(MessageUnderALimit());
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "exit code " << WEXITSTATUS(status);
}

TEST(ParallelFor, CoversEachIndexOnce) {
  for (int threads : {1, 2, 3, 5}) {
    Team team(threads);
    for (size_t count : {0, 1, 2, 3, 7, 64, 1000}) {
      for (size_t grain : {0, 1, 10, 2000}) {
        std::vector<int> seen(count, 0);
        ParallelFor(team, count, grain, [&](size_t begin, size_t end) {
          EXPECT_TRUE(begin < end);
          for (size_t i = begin; i < end; ++i) ++seen[i];
        });
        EXPECT_EQ(seen, std::vector<int>(count, 1));
      }
    }
  }
}

TEST(ParallelFor, AThreadThatIsHeldUpLeavesTheRestToTheOthers) {
  for (int threads : {2, 4}) {
    Team team(threads);
    std::atomic<size_t> done{0};
    std::atomic<bool> is_first{true};
    ParallelFor(team, 1000, 1, [&](size_t begin, size_t end, size_t thread) {
      EXPECT_LT(thread, size_t(threads));
      if (is_first.exchange(false)) {
        while (done < 1000 - (end - begin)) std::this_thread::yield();
      }
      done += end - begin;
    });
    EXPECT_EQ(done, 1000u);
  }
}

TEST(ParallelFor, LittleWorkStaysWithTheCaller) {
  Team team(3);
  const auto caller = std::this_thread::get_id();
  ParallelFor(team, 19, 10, [&](size_t, size_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

}  // namespace
}  // namespace trireme
