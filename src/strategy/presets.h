#pragma once
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "strategy/centre_choices.h"
#include "strategy/common.h"
#include "strategy/options.h"
#include "strategy/strategy.h"
#include "transport/world.h"

namespace trireme {

// What all ranks of a job know when they make their strategy. Outlives what is made of it.
struct StrategySetup {
  const StrategyOptions& options;
  const Plan& plan;
  const Layout& layout;
  bool deterministic = false;
  StrategyCommon* common = nullptr;  // what the preset made with it, if it did
  // For servers that update.
  const OptimizerOptions* optimizer = nullptr;
  const Schedule* schedule = nullptr;
  const Log* log = nullptr;
  int64_t own_samples = 0;  // of a client with data of its own: leases only count them
};

// A known combination of the four choices: one row of the list.
struct StrategyPreset {
  const char* name;
  const char* help;
  bool in_step;  // else a free pace: servers hold the centre, and --deterministic is refused
  int servers;   // the first ranks, which do not train
  std::unique_ptr<Strategy> (*worker)(const StrategySetup&, World&);
  std::unique_ptr<Server> (*server)(const StrategySetup&, World&, std::span<const float> state);
  CentreChoices choices = {};  // where the centre is at a server
  // Not null: the workers are threads of one process and have this in common.
  std::unique_ptr<StrategyCommon> (*common)(int workers, double timeout_s) = nullptr;
  bool local_steps = false;    // in step, but each worker's update is its own between meetings
  bool shares_memory = false;  // the ranks are threads, or processes over shm
};

std::span<const StrategyPreset> StrategyPresets();
const StrategyPreset& FindPreset(std::string_view name);  // UsageError: no such strategy

// Ranks that train. UsageError where a strategy cannot run so.
int CheckStrategy(const StrategyOptions& options, int ranks, bool deterministic);

// strategy.algorithm as it is used, where it is left open. Every rank calls it before MakeWorker.
std::string ResolveAlgorithm(const StrategySetup& setup, World& world);

// A lease is a shard of a step: workers stand for no share of the batch.
bool LeasesShards(const StrategyOptions& options);

// With a server: for each rank the team that it works in, -1 for none; empty: there are none.
std::vector<int> TeamsOf(const StrategyOptions& options, int ranks);
bool TeamsShareMemory(const StrategyOptions& options);
// With a free pace: how many of so many workers take leases.
int FreeClients(const StrategyOptions& options, int workers);

// A client may have samples of its own: only weights leave it, and they count by the samples.
bool MayHaveOwnData(const StrategyOptions& options);

// The rank that writes the run: with a centre its server, which holds all that is to be kept.
int RecordingRank(std::string_view strategy);

// For ranks from `servers` on, and for those before.
std::unique_ptr<Strategy> MakeWorker(const StrategySetup& setup, World& world);
std::unique_ptr<Server> MakeServer(const StrategySetup& setup, World& world,
                                   std::span<const float> state);

}  // namespace trireme
