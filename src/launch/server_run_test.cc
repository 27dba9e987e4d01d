// Who is started again, and who is given up. Ranks here are processes: what they see they count in
// memory that they share with the test.
#include "launch/server_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "base/error.h"
#include "transport/collective/broadcast.h"
#include "transport/forked.h"
#include "transport/shared_array.h"
#include "transport/tcp/world.h"

namespace trireme {
namespace {

using Counts = SharedArray<std::atomic<int>>;

class ServerRunTest : public testing::Test {
 protected:
  ServerRunTest() { listener_ = ListenOnLoopback(port_); }
  ~ServerRunTest() override { close(listener_); }

  // Rank 0 serves until `done` says so; the others live as `client` says.
  int Run(const std::vector<int>& groups, FunctionRef<bool()> done,
          FunctionRef<void(World&)> client) {
    const int ranks = int(groups.size());
    ServerWorldSetup setup{.tcp = {.size = ranks, .meet = fmt::format("127.0.0.1:{}", port_)}};
    setup.tcp.listener = listener_;
    setup.tcp.timeout_s = 60;
    setup.judge = [](const std::string&) { return ""; };
    return RunServerRanks({.setup = setup, .local = ranks, .groups = groups}, [&](World& world) {
      lives_[world.rank()].fetch_add(1);
      if (world.rank() > 0) {
        client(world);
      } else {
        while (!done()) usleep(1000);
      }
      return 0;
    });
  }

  static constexpr int kMost = 8;  // ranks
  Counts lives_{kMost};
  int port_ = 0, listener_ = -1;
};

void Die() { raise(SIGKILL); }

TEST_F(ServerRunTest, AGroupWithARankThatDiesAtOnceEachTimeIsGivenUpAsAWhole) {
  Counts steps(kMost);
  Counts over(1);
  // Ranks 1 and 2 are a group, 3 and 4 another one, whose last rank never does a step.
  const int status = Run(
      {-1, 0, 0, 1, 1}, [&] { return over[0].load() == 2; },
      [&](World& world) {
        const int rank = world.rank();
        const int number = (rank - 1) / 2;
        Group& group = world.Subgroup(number, (rank - 1) % 2, 2);
        if (rank == 4) Die();
        Barrier(group, 1);  // rank 3 waits here for rank 4
        steps[rank].fetch_add(1);
        // Until the other group has had all the lives that it is given.
        while (number == 0 && lives_[4].load() < 20) usleep(1000);
        over[0].fetch_add(1);
      });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(steps[1], 1);
  EXPECT_EQ(steps[2], 1);
  EXPECT_EQ(steps[3], 0);
  EXPECT_EQ(lives_[3], lives_[4]);  // started together
  EXPECT_EQ(lives_[4], 20);
  EXPECT_EQ(lives_[1], 1);
}

TEST_F(ServerRunTest, WhoDoesAStepInEachLifeIsStartedAgainHoweverOften) {
  constexpr int kLives = 60;
  Counts over(1);
  const int status = Run(
      {-1, -1, 0, 0}, [&] { return over[0].load() == 3; },
      [&](World& world) {
        const int rank = world.rank();
        world.Worked();
        const bool dies = rank != 3;
        if (rank > 1) Barrier(world.Subgroup(0, rank - 2, 2), 1);
        if (dies && lives_[rank].load() < kLives) Die();
        if (rank == 3 && lives_[2].load() < kLives) {
          for (;;) usleep(1000);  // is killed with its group
        }
        over[0].fetch_add(1);
      });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(lives_[1], kLives);
  EXPECT_EQ(lives_[2], kLives);
  EXPECT_EQ(lives_[3], kLives);
}

bool HasEnded(int pid) {  // also if nobody has asked for its status yet
  std::string state;
  std::ifstream(fmt::format("/proc/{}/stat", pid)) >> state >> state >> state;
  return state.empty() || state == "Z";
}

TEST_F(ServerRunTest, ARankThatIsReadyWhenItsGroupDiesIsStartedAgainWithIt) {
  constexpr int kLives = 30;
  Counts over(1), process(kMost);
  const int status = Run(
      {-1, 0, 0}, [&] { return over[0].load() == 1; },
      [&](World& world) {
        world.Worked();
        const int rank = world.rank();
        Group& group = world.Subgroup(0, rank - 1, 2);
        process[rank].store(getpid());
        Barrier(group, 1);
        if (rank == 2) return;
        while (!HasEnded(process[2].load())) sched_yield();
        if (lives_[1].load() < kLives) Die();
        over[0].fetch_add(1);
      });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(lives_[1], kLives);
  EXPECT_EQ(lives_[2], kLives);
}

TEST_F(ServerRunTest, ARankThatThrowsTakesItsGroupAndNobodyElse) {
  Counts over(1), process(kMost);
  const int status = Run(
      {-1, -1, 0, 0}, [&] { return over[0].load() == 1; },
      [&](World& world) {
        const int rank = world.rank();
        if (rank == 1) {
          while (process[2].load() == 0 || kill(process[2].load(), 0) == 0) usleep(1000);
          over[0].fetch_add(1);
          return;
        }
        process[rank].store(getpid());
        world.Subgroup(0, rank - 2, 2);
        if (rank == 3) throw Error("no more");
        // Not in the group's barrier: that its peer is lost may be seen before why.
        for (;;) usleep(1000);
      });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(lives_[2], 1);
  EXPECT_EQ(lives_[3], 1);
}

// Another server was started again, on another machine: what this one has does not fit any more.
TEST_F(ServerRunTest, AServerThatIsOutdatedIsStartedAgain) {
  Counts over(1);
  const int status = Run(
      {-1, -1},
      [&] {
        if (lives_[0].load() < 3) throw Outdated("server 1 was restarted");
        return over[0].load() == 1;
      },
      [&](World&) { over[0].fetch_add(1); });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(lives_[0], 3);
  EXPECT_EQ(lives_[1], 1);
}

TEST_F(ServerRunTest, NobodyLeftEndsTheRunWithTheReason) {
  try {
    Run(
        {-1, 0, 0}, [] { return false; },
        [&](World& world) {
          Group& group = world.Subgroup(0, world.rank() - 1, 2);
          if (world.rank() == 1) Die();
          Barrier(group, 1);
        });
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("killed by signal 9"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(lives_[1], 20);
  EXPECT_EQ(lives_[2], 20);
}

}  // namespace
}  // namespace trireme
