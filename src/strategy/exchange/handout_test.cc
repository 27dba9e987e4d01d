// Workers that take leases by themselves, beside a server that only says when an epoch is over:
// ranks of a threads world with a memory box.
#include "strategy/exchange/handout.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "strategy/check/counted_once.h"
#include "transport/check/what_of.h"
#include "transport/memory/box.h"
#include "transport/threads/run.h"
#include "transport/threads/thread_link.h"

namespace trireme {
namespace {

constexpr double kPatience_s = 60;
constexpr int64_t kFirstId = 1000;

struct Scene {
  LeaseTable::Run run{.samples = 100, .total = 350, .size = 7};
  std::vector<int64_t> saved;  // empty: from the start
  int workers = 3;
  int64_t stop_at = -1;  // positions: the run ends early
  // What a worker does with a lease: false: it was void.
  std::function<bool(int worker, Handout& leases, const Lease& lease)> work;
};

// Returns how many positions count at the end, each once.
int64_t Play(const Scene& scene) {
  LeaseTable table(scene.run, kFirstId);
  if (!scene.saved.empty()) table.Load(scene.saved, kFirstId);
  CountedOnce counter({.samples = scene.run.samples});
  const int64_t before = table.closed_positions();
  const auto positions = [&] { return before + int64_t(counter.counted().size()); };
  MemoryBox box{MemoryBoxSetup{}};
  std::atomic<int> here = scene.workers;
  RunRanks(scene.workers + 1, kPatience_s, [&](World& world) {
    const auto memory = box.Connect();
    if (world.rank() == 0) {
      HandoutBoard board(*memory);
      board.Begin(table, 0);
      int64_t epoch = table.epoch();
      while (here.load() > 0) {
        if (positions() >= (epoch + 1) * scene.run.samples) board.Allow(++epoch);
        if (scene.stop_at >= 0 && positions() >= scene.stop_at) board.Stop();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      return;
    }
    ServerLine line(std::vector<ServerLine::Holder>{{&world.LinkTo(0), {}}});
    Handout leases({.memory = *memory,
                    .run = scene.run,
                    .client = world.rank() - 1,
                    .clients = scene.workers,
                    .timeout_s = kPatience_s},
                   {.most = 4}, line);
    leases.AwaitServer();
    std::vector<Lease> held;  // claimed; pushed three at a time
    Lease lease;
    for (auto answer = LeaseSource::Answer::kLease; answer != LeaseSource::Answer::kEnd;) {
      answer = leases.Claim(!held.empty(), lease);
      if (answer == LeaseSource::Answer::kVoid) held.clear();
      if (answer == LeaseSource::Answer::kLease) {
        if (scene.work && !scene.work(world.rank() - 1, leases, lease)) continue;
        held.push_back(lease);
      }
      if (answer != LeaseSource::Answer::kDrain && held.size() < 3) continue;
      std::vector<int64_t> ids;
      for (const Lease& each : held) ids.push_back(each.id);
      if (leases.Release(ids)) {
        for (const Lease& each : held) counter.Close(each);
      }
      held.clear();
    }
    EXPECT_TRUE(held.empty());
    --here;
  });
  counter.ExpectOnce(positions() - before);
  return positions();
}

TEST(Handout, GivesEveryPositionOnce) {
  for (const EpochBorder border : {EpochBorder::kBarrier, EpochBorder::kOpen}) {
    for (const int workers : {1, 3}) {
      Scene scene{.workers = workers};
      scene.run.border = border;
      EXPECT_EQ(Play(scene), 350);
    }
  }
}

TEST(Handout, GoesOnWhereASavedTableHasHoles) {
  for (const EpochBorder border : {EpochBorder::kBarrier, EpochBorder::kOpen}) {
    Scene scene;
    scene.run.border = border;
    LeaseTable table(scene.run, 1);
    for (int i = 0; i < 9; ++i) {
      const int64_t id = table.Take(0)->id;
      if (i % 3) table.Close(id);
    }
    scene.saved = table.Save();
    EXPECT_EQ(Play(scene), 350);
  }
}

// Nobody begins an epoch before all of the last one counts, and nobody waits for one that holds
// what it has done.
TEST(Handout, WaitsAtTheEndOfAnEpochForAll) {
  Scene scene{.workers = 4};
  std::atomic<int64_t> counted = 0;
  scene.work = [&](int worker, Handout&, const Lease& lease) {
    EXPECT_GE(counted.load(), lease.epoch * 100);
    if (worker == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    counted += lease.end - lease.begin;
    return true;
  };
  EXPECT_EQ(Play(scene), 350);
}

TEST(Handout, GivesWhatWasVoidAgain) {
  Scene scene;
  std::mutex mutex;
  std::map<int64_t, int> voids;  // by lease
  scene.work = [&](int worker, Handout& leases, const Lease& lease) {
    int times = 3;
    if (lease.id % 5 == 0) {
      std::lock_guard lock(mutex);
      times = ++voids[lease.id];
    }
    if (times > 2) return true;
    // The first time before it is pushed, the second time behind it.
    const bool pushed = times == 2 && leases.Release(std::vector{lease.id});
    leases.Void({.client = worker, .fence = {}},
                pushed ? std::vector{lease.id} : std::vector<int64_t>());
    EXPECT_TRUE(leases.holds_void());
    EXPECT_FALSE(leases.Release(std::vector{lease.id}));
    return false;
  };
  EXPECT_EQ(Play(scene), 350);
  EXPECT_GE(voids.size(), 9u);
}

// Also what was pushed last: a worker that ends has heard that it counts.
TEST(Handout, EndsWhenWhatWasPushedLastCounts) {
  const LeaseTable::Run run{.samples = 14, .total = 14, .size = 7};
  MemoryBox box{MemoryBoxSetup{}};
  RunRanks(2, kPatience_s, [&](World& world) {
    const auto memory = box.Connect();
    int32_t done = 0;
    if (world.rank() == 0) {
      HandoutBoard(*memory).Begin(LeaseTable(run, kFirstId), 0);
      world.group().Receive(1, 1, std::as_writable_bytes(std::span(&done, 1))).Wait();
      return;
    }
    using enum LeaseSource::Answer;
    ServerLine line(std::vector<ServerLine::Holder>{{&world.LinkTo(0), {}}});
    Handout leases({.memory = *memory, .run = run, .timeout_s = kPatience_s}, {.most = 4}, line);
    leases.AwaitServer();
    Lease lease;
    const auto claim = [&] { return leases.Claim(/*holds=*/false, lease); };
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(claim(), kLease);
      EXPECT_TRUE(leases.Release(std::vector{lease.id}));
    }
    EXPECT_EQ(claim(), kDrain);
    leases.Void({.client = 0, .fence = {}}, std::vector{lease.id});
    EXPECT_EQ(claim(), kVoid);
    const Lease last = lease;
    EXPECT_EQ(claim(), kLease);
    EXPECT_EQ(lease, last);
    EXPECT_TRUE(leases.Release(std::vector{lease.id}));
    EXPECT_EQ(claim(), kDrain);
    EXPECT_EQ(claim(), kEnd);
    world.group().Send(0, 1, std::as_bytes(std::span(&done, 1))).Wait();
  });
}

// A worker's side alone, which hears of rank 0 only what the board says.
class HandoutAlone : public testing::Test {
 protected:
  void Begin() {
    leases_.emplace(Handout::Place{.memory = *memory_, .run = kRun, .timeout_s = 0.2},
                    LeaseSource::Ahead{.most = 4}, line_);
  }

  static inline const LeaseTable::Run kRun{.samples = 14, .total = 28, .size = 7};
  MemoryBox box_{MemoryBoxSetup{}};
  const std::unique_ptr<Memory> memory_ = box_.Connect();
  HandoutBoard board_{*memory_};
  ThreadLink wire_{10, 10};
  ServerLine line_{std::vector<ServerLine::Holder>{{&wire_.client(), {}}}};
  std::optional<Handout> leases_;
};

TEST_F(HandoutAlone, SaysThatRankZeroHasNotBegun) {
  Begin();
  const std::string words = WhatOf([&] { leases_->AwaitServer(); });
  EXPECT_TRUE(Has(words, "rank 0 has not said what is to be done")) << words;
}

TEST_F(HandoutAlone, GivesUpARankZeroThatIsSilentAtTheEndOfAnEpoch) {
  board_.Begin(LeaseTable(kRun, kFirstId), 0);
  Begin();
  leases_->AwaitServer();
  Lease lease;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(leases_->Claim(false, lease), LeaseSource::Answer::kLease);
    EXPECT_TRUE(leases_->Release(std::vector{lease.id}));
  }
  const auto begin_the_next = [&] {
    while (leases_->Claim(false, lease) == LeaseSource::Answer::kDrain) {
    }
  };
  EXPECT_THROW(begin_the_next(), PeerLost);
}

TEST_F(HandoutAlone, GivesUpARankZeroThatDoesNotRead) {
  board_.Begin(LeaseTable(kRun, kFirstId), 0);
  Begin();
  leases_->AwaitServer();
  leases_->AwaitReader(kMostUnread - 1);
  EXPECT_THROW(leases_->AwaitReader(kMostUnread), PeerLost);
  board_.Read(kMostUnread / 2);
  leases_->AwaitReader(kMostUnread);
}

TEST(Handout, EndsEarlyWhenTheServerStops) {
  for (const EpochBorder border : {EpochBorder::kBarrier, EpochBorder::kOpen}) {
    Scene scene{.stop_at = 120};
    scene.run.border = border;
    scene.run.total = int64_t(1) << 40;
    EXPECT_GE(Play(scene), 120);
  }
}

TEST(Handout, AWorkerThatEndsDoesWhatItHas) {
  Scene scene;
  scene.work = [](int worker, Handout& leases, const Lease&) {
    if (worker == 1) leases.Stop();
    return true;
  };
  EXPECT_EQ(Play(scene), 350);
}

}  // namespace
}  // namespace trireme
