#include "study/run_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>

#include "base/error.h"

namespace trireme {
namespace {

// Ten runs; those that were run are done.
class RunQueueTest : public testing::Test {
 protected:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<size_t> done_;  // guarded by mutex_
  std::vector<std::string> said_;
  std::atomic<int> stop_ = 0;
  RunQueue queue_;

  RunQueueTest() {
    queue_ = {.count = 10,
              .done = [&](size_t run) { return done_.count(run) > 0; },
              .run = [&](size_t run, int, int) { return Done(run); },
              .kind = [](size_t run) { return run % 2; },
              .stopped = [&] { return stop_.load(); },
              .say = [&](const std::string& line) { said_.push_back(line); }};
  }

  std::string Done(size_t run) {
    std::lock_guard lock(mutex_);
    EXPECT_TRUE(done_.insert(run).second) << run << " ran twice";
    changed_.notify_all();
    return "run " + std::to_string(run);
  }
};

TEST_F(RunQueueTest, OnlyWhatIsLeftIsRun) {
  done_ = {0, 4, 5};
  EXPECT_EQ(RunQueued(queue_), 0);
  EXPECT_EQ(done_.size(), 10u);
  ASSERT_EQ(said_.size(), 8u);
  EXPECT_EQ(said_[0], "3 of 10 runs are already done");
  EXPECT_EQ(said_[1].find("4/10 run 1; about "), 0u) << said_[1];
  EXPECT_EQ(said_[7], "10/10 run 9");
}

// Three at once: each waits until two others have begun.
TEST_F(RunQueueTest, SeveralGoOnAtOnceInSlotsOfTheirOwn) {
  queue_.parallel = 3;
  queue_.count = 9;
  std::set<int> busy;
  size_t begun = 0;
  queue_.run = [&](size_t run, int slot, int slots) {
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
    return Done(run);
  };
  EXPECT_EQ(RunQueued(queue_), 0);
  EXPECT_EQ(done_.size(), 9u);
  EXPECT_EQ(said_.size(), 9u);
}

TEST_F(RunQueueTest, WhatFailsEndsItWhenTheOthersAreOver) {
  for (const int parallel : {1, 2}) {
    done_.clear();
    queue_.parallel = parallel;
    queue_.run = [&](size_t run, int, int) {
      if (run == 0) throw Error("too hot");
      std::unique_lock lock(mutex_);
      done_.insert(run);
      return std::string();
    };
    EXPECT_THROW(RunQueued(queue_), Error);
    EXPECT_FALSE(done_.count(0));
    EXPECT_TRUE(parallel > 1 || done_.empty());
  }
}

TEST_F(RunQueueTest, StopsWithTheCode) {
  queue_.run = [&](size_t run, int, int) {
    if (run == 3) stop_ = 143;
    return Done(run);
  };
  EXPECT_EQ(RunQueued(queue_), 143);
  EXPECT_EQ(done_.size(), 4u);
}

}  // namespace
}  // namespace trireme
