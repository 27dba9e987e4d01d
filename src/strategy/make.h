#pragma once
#include <memory>
#include <span>

#include "base/log.h"
#include "flat/device_group.h"
#include "strategy/choice.h"
#include "strategy/inner/strategy_common.h"
#include "strategy/server/server.h"
#include "strategy/strategy.h"
#include "transport/memory.h"
#include "transport/world.h"

namespace trireme {

// What all ranks of a job know when they make their strategy. Outlives what is made of it.
struct StrategySetup {
  StrategyChoice choice;
  const Plan& plan;
  const Layout& layout;
  StrategyCommon* common = nullptr;  // what the inner choice made with it, if it did
  // For servers that update.
  const OptimizerOptions* optimizer = nullptr;
  const Schedule* schedule = nullptr;
  const Log* log = nullptr;
  bool show_sums = false;   // log how gradients are summed, where a device could do it by itself
  int threads = 1;          // of a server that updates
  int64_t own_samples = 0;  // of a client with data of its own: leases only count them
  uint64_t seed = 0;        // for what is drawn at random
};

// strategy.algorithm as it is used, where it is left open. Every rank calls it before MakeWorker.
// `devices`, here and below: makes groups of this rank's device with others, and outlives what is
// made here; null: it has none.
std::string ResolveAlgorithm(const StrategySetup& setup, World& world,
                             DeviceGroups* devices = nullptr);

// For ranks that train and for those that take part in steps, and for servers of a free pace.
std::unique_ptr<Strategy> MakeWorker(const StrategySetup& setup, World& world,
                                     DeviceGroups* devices = nullptr);
// `state`, of what is trained, is the first server's: it gives the others their partitions.
std::unique_ptr<Server> MakeServer(const StrategySetup& setup, World& world,
                                   std::span<const float> state);

// Remote memory that the ranks have in common; none: 0.
MemoryRoom MemoryRoomOf(const StrategyChoice& choice, const Layout& layout);

int64_t LeaseSize(const Plan& plan, int clients);  // in positions

}  // namespace trireme
