#include "transport/threads/run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "transport/collective/broadcast.h"

namespace trireme {
namespace {

std::string WhatOf(FunctionRef<void()> fn) {
  try {
    fn();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(RunRanks, GivesEachRankItsNumber) {
  std::atomic<int> mask = 0;
  RunRanks(4, 60, [&](World& world) {
    EXPECT_EQ(world.size(), 4);
    mask |= 1 << world.rank();
  });
  EXPECT_EQ(mask, 15);
}

TEST(RunRanks, AWorldOfOneStaysOnItsThread) {
  std::thread::id id;
  RunRanks(1, 60, [&](World&) { id = std::this_thread::get_id(); });
  EXPECT_EQ(id, std::this_thread::get_id());
  EXPECT_EQ(WhatOf([] { RunRanks(1, 60, [](World&) { throw Error("no such file"); }); }),
            "no such file");
}

TEST(RunRanks, ARankThatThrowsEndsTheOthersAtOnceWithItsOwnError) {
  const std::string what = WhatOf([] {
    RunRanks(4, /*timeout_s=*/3600, [](World& world) {
      if (world.rank() == 2) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        throw Error("disk full");
      }
      Barrier(world.group(), 0);  // never complete
    });
  });
  EXPECT_EQ(what, "disk full (rank 2 of 4)");
}

TEST(RunRanks, AnEchoThatComesEarlierIsNotTheError) {
  const std::string what = WhatOf([] {
    RunRanks(3, 60, [](World& world) {
      if (world.rank() == 1) {  // as a strategy does that is destroyed in the middle of a step
        world.group().Abort("stopped in the middle of a step");
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        throw Error("disk full");
      }
      Barrier(world.group(), 0);
    });
  });
  EXPECT_EQ(what, "disk full (rank 1 of 3)");
}

TEST(RunRanks, KeepsTheKindOfAnError) {
  const auto wrong = [](World& world) {
    if (world.rank() == 0) throw UsageError("wrong key");
    Barrier(world.group(), 0);
  };
  EXPECT_THROW(RunRanks(2, 60, wrong), UsageError);
  const auto foreign = [](World& world) {
    if (world.rank() == 1) throw std::runtime_error("out of paper");
  };
  EXPECT_EQ(WhatOf([&] { RunRanks(2, 60, foreign); }), "out of paper (rank 1 of 2)");
}

TEST(RunRanks, LinksJoinPairsAndEndWithTheJob) {
  RunRanks(3, 60, [](World& world) {
    Message message;
    if (world.rank() == 0) {
      for (int r : {1, 2}) {
        ASSERT_EQ(world.LinkTo(r).Receive(message, After(60)), Arrival::kMessage);
        EXPECT_EQ(message.kind, r);
      }
    } else {
      world.LinkTo(0).Send({.kind = world.rank()});
    }
  });
  const std::string what = WhatOf([] {
    RunRanks(2, 60, [](World& world) {
      Message message;
      if (world.rank() == 0) throw Error("disk full");
      world.LinkTo(0).Receive(message, After(60));
    });
  });
  EXPECT_EQ(what, "disk full (rank 0 of 2)");
}

}  // namespace
}  // namespace trireme
