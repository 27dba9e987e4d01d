// A step allocates nothing. In a program of its own: it replaces operator new.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "strategy/check/toy_engine.h"
#include "strategy/make.h"
#include "transport/collective/broadcast.h"
#include "transport/threads/run.h"

namespace {
std::atomic<int64_t> allocations = 0;
}  // namespace

// Not inline: gcc would pair malloc and delete and warn.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  if (void* p = std::malloc(bytes ? bytes : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace trireme {
namespace {

TEST(Allocation, AStepTakesNoMemory) {
  const toy::Model model(20'000, 1 << 12);
  const StrategyOptions options;
  const Plan plan{.samples = 60, .batch = 6, .shards = 6, .steps = 60};
  for (int ranks : {1, 2, 3}) {
    for (bool deterministic : {false, true}) {
      const StrategySetup setup{
          ResolveStrategy(options, {.ranks = ranks, .deterministic = deterministic}), plan,
          model.layout};
      RunRanks(ranks, 60, [&](World& world) {
        const auto device = toy::Host();
        const auto strategy = MakeWorker(setup, world);
        toy::Worker worker(model, {}, plan, *device, *strategy);
        worker.Start(model.initial, 0, nullptr);
        while (worker.step() < 30) worker.Step();
        Barrier(world.group(), kTags - 2);
        const int64_t before = allocations;
        while (worker.step() < 50) worker.Step();
        const int64_t after = allocations;
        Barrier(world.group(), kTags - 2);
        EXPECT_EQ(after - before, 0) << ranks << " ranks, deterministic " << deterministic;
      });
    }
  }
}

}  // namespace
}  // namespace trireme
