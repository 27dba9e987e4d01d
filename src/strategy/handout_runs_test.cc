// Whole runs with the centre in memory whose clients end together, as in MPI windows: workers take
// their leases by themselves, and the server follows. Ranks of a threads world.
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "strategy/check/stops_at.h"
#include "strategy/check/toy_engine.h"
#include "strategy/make.h"
#include "strategy/server/handout_board.h"
#include "strategy/server/memory_ledger.h"
#include "transport/memory/box.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

constexpr double kPatience_s = 20;

// A way to a box, by its word one that nobody can lose alone.
class TogetherMemory final : public Memory {
 public:
  explicit TogetherMemory(std::unique_ptr<Memory> box) : box_(std::move(box)) {}
  Region Create(std::string_view name, RegionType type, uint64_t length) override {
    return box_->Create(name, type, length);
  }
  Region Open(std::string_view name, Deadline deadline) override {
    return box_->Open(name, deadline);
  }
  Ticket Accumulate(const Region& region, uint64_t offset, std::span<const float> values,
                    std::span<const std::byte> note, uint64_t* version,
                    const MemoryGuard* guard) override {
    EXPECT_FALSE(guard);
    return box_->Accumulate(region, offset, values, note, version, guard);
  }
  int64_t FetchAdd(const Region& region, uint64_t index, int64_t amount) override {
    return box_->FetchAdd(region, index, amount);
  }
  int64_t CompareSwap(const Region& region, uint64_t index, int64_t expected,
                      int64_t wanted) override {
    return box_->CompareSwap(region, index, expected, wanted);
  }
  uint64_t Wait(const Region& region, uint64_t version, Deadline deadline) override {
    return box_->Wait(region, version, deadline);
  }
  std::vector<RegionNote> Notes(const Region& region, uint64_t version, size_t most) override {
    return box_->Notes(region, version, most);
  }
  bool Lock(const Region& region, Deadline deadline) override {
    return box_->Lock(region, deadline);
  }
  void Unlock(const Region& region) override { box_->Unlock(region); }
  uint64_t client() const override { return box_->client(); }
  uint64_t incarnation() const override { return box_->incarnation(); }
  std::string way() const override { return box_->way(); }
  Volume volume() const override { return box_->volume(); }
  bool one_fate() const override { return true; }

 protected:
  Ticket PutBytes(const Region& region, RegionType type, uint64_t offset,
                  std::span<const std::byte> values, std::span<const std::byte> note,
                  uint64_t* version) override {
    const size_t count = values.size() / ValueBytes(type);
    if (type == RegionType::kF32) {
      const auto* const floats = reinterpret_cast<const float*>(values.data());
      return box_->Put(region, offset, std::span(floats, count), note, version);
    }
    const auto* const ints = reinterpret_cast<const int64_t*>(values.data());
    return box_->Put(region, offset, std::span(ints, count), note, version);
  }
  Ticket GetBytes(const Region& region, RegionType type, uint64_t offset,
                  std::span<std::byte> values, uint64_t* version) override {
    const size_t count = values.size() / ValueBytes(type);
    if (type == RegionType::kF32) {
      auto* const floats = reinterpret_cast<float*>(values.data());
      return box_->Get(region, offset, std::span(floats, count), version);
    }
    auto* const ints = reinterpret_cast<int64_t*>(values.data());
    return box_->Get(region, offset, std::span(ints, count), version);
  }

 private:
  const std::unique_ptr<Memory> box_;
};

class TogetherWorld final : public World {
 public:
  TogetherWorld(World& world, MemoryBox& box) : world_(world), memory_(box.Connect()) {}
  Group& group() override { return world_.group(); }
  Link& LinkTo(int rank) override { return world_.LinkTo(rank); }
  Memory* memory() override { return &memory_; }

 private:
  World& world_;
  TogetherMemory memory_;
};

struct Keeper : StopsAt {
  using StopsAt::StopsAt;
  void Look(const Server& server) override {
    StopsAt::Look(server);
    if (look) look(server);
  }
  bool Busy() override { return busy && busy(); }
  std::function<void(const Server& server)> look = {};
  std::function<bool()> busy = {};
};

// How many positions count at the end.
int64_t Train(const StrategyOptions& options, const Plan& plan, int ranks, MemoryBox& box,
              Keeper& keeper, const toy::Memory* resume, toy::Memory* save) {
  const OptimizerOptions optimizer{.lr = 0.05, .momentum = 0};
  const toy::Model model(200);
  const StrategySetup setup{ResolveStrategy(options, {.ranks = ranks}), plan, model.layout};
  int64_t closed = 0;
  RunRanks(ranks, kPatience_s, [&](World& threads) {
    TogetherWorld world(threads, box);
    if (world.rank() == 0) {
      const auto server = MakeServer(setup, world, resume ? resume->state : model.initial);
      if (resume) server->Load(*resume);
      server->Run(&keeper);
      closed = server->progress().positions;
      if (!save) return;
      server->Gather();
      server->Save(*save);
      save->state.assign(server->centre().begin(), server->centre().end());
      return;
    }
    const auto device = toy::Host();
    const auto strategy = MakeWorker(setup, world);
    toy::Worker worker(model, optimizer, plan, *device, *strategy);
    worker.Start(model.initial, 0, resume);
    while (worker.Step() != Turn::kEnd) {
    }
    worker.Finish();
  });
  return closed;
}
int64_t Train(const StrategyOptions& options, const Plan& plan, int ranks,
              const toy::Memory* resume, toy::Memory* save, int64_t stop_after = -1) {
  MemoryBox box{MemoryBoxSetup{}};
  Keeper keeper(stop_after);
  return Train(options, plan, ranks, box, keeper, resume, save);
}

class HandoutRuns : public testing::TestWithParam<StrategyOptions> {};

TEST_P(HandoutRuns, CountEveryPositionOnce) {
  const Plan plan{.samples = 100, .batch = 30, .shards = 1, .steps = 40};
  EXPECT_EQ(Train(GetParam(), plan, 5, nullptr, nullptr), 1000);
  EXPECT_EQ(Train(GetParam(), plan, 3, nullptr, nullptr), 1000);
}

TEST_P(HandoutRuns, StopEarlyAndUseTheRestOnce) {
  const Plan plan{.samples = 300, .batch = 30, .shards = 1, .steps = 40};
  toy::Memory saved;
  const int64_t half = Train(GetParam(), plan, 5, nullptr, &saved, /*stop_after=*/200);
  EXPECT_GE(half, 200);
  EXPECT_LE(half, 600);  // of the epoch in which it stops, and of the next
  EXPECT_EQ(Train(GetParam(), plan, 4, &saved, nullptr), 1200);  // another number of workers
}

INSTANTIATE_TEST_SUITE_P(
    All, HandoutRuns,
    testing::Values(StrategyOptions{.name = "easgd", .centre = "memory", .period = 3},
                    StrategyOptions{.name = "hogwild", .centre = "memory"},
                    StrategyOptions{.name = "pgas"}),
    [](const auto& test) { return test.param.name; });

// At the end of an epoch, where workers hear of rank 0 by the board alone: it moves while the next
// one has to wait.
TEST(HandoutRun, RankZeroIsNotSilentAtTheEndOfAnEpoch) {
  const Plan plan{.samples = 100, .batch = 30, .shards = 1, .steps = 8};
  MemoryBox box{MemoryBoxSetup{}};
  const auto memory = box.Connect();
  Keeper keeper(-1);
  uint64_t first = 0;
  keeper.busy = [&] {
    const uint64_t now = memory->Wait(memory->Open(kBoardRegion, After(0)), 0, After(0));
    if (first == 0) first = now;
    return now == first;
  };
  const StrategyOptions easgd{.name = "easgd", .centre = "memory"};
  EXPECT_EQ(Train(easgd, plan, 3, box, keeper, nullptr, nullptr), 200);
}

// Rank 0 stands still in the middle of an epoch for as long as anybody adds: the others wait before
// the ring has lost what it has not read.
TEST(HandoutRun, WaitsForARankZeroThatDoesNotRead) {
  const Plan plan{.samples = 3000, .batch = 4, .shards = 1, .steps = 750};
  MemoryBox box{MemoryBoxSetup{}};
  const auto memory = box.Connect();
  Keeper keeper(-1);
  uint64_t reached = 0;
  keeper.look = [&](const Server& server) {
    if (reached > 0 || server.progress().positions == 0) return;
    const Region centre = memory->Open(kCentreRegion, After(kPatience_s));
    for (uint64_t before = 0; reached == 0 || reached > before;) {
      before = reached;
      reached = memory->Wait(centre, before + 1, After(0.5));
    }
  };
  const StrategyOptions hogwild{.name = "hogwild", .centre = "memory"};
  EXPECT_EQ(Train(hogwild, plan, 5, box, keeper, nullptr, nullptr), 3000);
  EXPECT_LT(reached, kKeptNotes);
}

}  // namespace
}  // namespace trireme
