#include "study/turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>

#include "base/error.h"

namespace trireme {
namespace {

// Ten turns; those that were run are done.
class TurnsTest : public testing::Test {
 protected:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<size_t> done_;  // guarded by mutex_
  std::vector<std::string> said_;
  std::atomic<int> stop_ = 0;
  Turns turns_;

  TurnsTest() {
    turns_ = {.count = 10,
              .done = [&](size_t turn) { return done_.count(turn) > 0; },
              .run = [&](size_t turn, int, int) { return Done(turn); },
              .kind = [](size_t turn) { return turn % 2; },
              .stopped = [&] { return stop_.load(); },
              .say = [&](const std::string& line) { said_.push_back(line); }};
  }

  std::string Done(size_t turn) {
    std::lock_guard lock(mutex_);
    EXPECT_TRUE(done_.insert(turn).second) << turn << " ran twice";
    changed_.notify_all();
    return "turn " + std::to_string(turn);
  }
};

TEST_F(TurnsTest, OnlyWhatIsLeftIsRun) {
  done_ = {0, 4, 5};
  EXPECT_EQ(RunTurns(turns_), 0);
  EXPECT_EQ(done_.size(), 10u);
  ASSERT_EQ(said_.size(), 8u);
  EXPECT_EQ(said_[0], "3 of 10 runs are done already");
  EXPECT_EQ(said_[1].find("4/10 turn 1; about "), 0u) << said_[1];
  EXPECT_EQ(said_[7], "10/10 turn 9");
}

// Three at once: each waits until two others have begun.
TEST_F(TurnsTest, SeveralGoOnAtOnceInSlotsOfTheirOwn) {
  turns_.parallel = 3;
  turns_.count = 9;
  std::set<int> busy;
  size_t begun = 0;
  turns_.run = [&](size_t turn, int slot, int slots) {
    {
      std::unique_lock lock(mutex_);
      EXPECT_TRUE(busy.insert(slot).second) << "two in slot " << slot;
      EXPECT_LT(slot, slots);
      EXPECT_EQ(slots, 3);
      const size_t wanted = begun++ / 3 * 3 + 3;
      changed_.notify_all();
      changed_.wait(lock, [&] { return begun >= wanted; });
      busy.erase(slot);
    }
    return Done(turn);
  };
  EXPECT_EQ(RunTurns(turns_), 0);
  EXPECT_EQ(done_.size(), 9u);
  EXPECT_EQ(said_.size(), 9u);
}

TEST_F(TurnsTest, WhatFailsEndsItWhenTheOthersAreOver) {
  for (const int parallel : {1, 2}) {
    done_.clear();
    turns_.parallel = parallel;
    turns_.run = [&](size_t turn, int, int) {
      if (turn == 0) throw Error("too hot");
      std::unique_lock lock(mutex_);
      done_.insert(turn);
      return std::string();
    };
    EXPECT_THROW(RunTurns(turns_), Error);
    EXPECT_FALSE(done_.count(0));
    EXPECT_TRUE(parallel > 1 || done_.empty());
  }
}

TEST_F(TurnsTest, StopsWithTheCode) {
  turns_.run = [&](size_t turn, int, int) {
    if (turn == 3) stop_ = 143;
    return Done(turn);
  };
  EXPECT_EQ(RunTurns(turns_), 143);
  EXPECT_EQ(done_.size(), 4u);
}

}  // namespace
}  // namespace trireme
