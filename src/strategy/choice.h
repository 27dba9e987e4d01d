#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "optimizer/options.h"
#include "strategy/exchange/merge_kinds.h"
#include "strategy/inner/kinds.h"
#include "strategy/options.h"
#include "strategy/step/work.h"

namespace trireme {

// Where common weights live besides the replicas' (strategy.centre).
enum class CentreKind { kNone, kGroup, kServer, kMemory };
// When updates count (strategy.pace).
enum class PaceKind { kInStep, kFree, kClock, kRound };

std::vector<std::string> CentreWords();
std::vector<std::string> PaceWords();
std::vector<std::string> StaleWords();
std::vector<std::string> RouteWords();
std::vector<std::string> OverlapWords();
constexpr const char* kByRate = "rate";  // of strategy.balance

// A recipe's strategy, resolved once before the ranks start: what is left open is as the preset has
// it, and what cannot be is refused.
struct StrategyChoice {
  StrategyOptions options;  // as given
  const InnerKind* inner = nullptr;
  const MergeKind* merge = nullptr;
  CentreKind centre = CentreKind::kNone;
  PaceKind pace = PaceKind::kInStep;
  StaleKind stale = StaleKind::kScale;
  int ranks = 1;
  int servers = 0;          // the first ranks, which do not train
  int groups = 0;           // of workers that advance together; 0: there are none
  int period = 10;          // weights: steps between meetings; 0: once an epoch
  int push = 1, fetch = 1;  // gradients: steps between pushes, and between looks at the weights
  int64_t staleness = -1;   // -1: any
  bool broadcasts = false;  // the server offers all new weights, nobody asks
  bool star = false;        // in step through a server: each worker sends straight to it
  Overlap overlap;          // in step through a server
  bool balanced = false;    // in step: shards by measured speed
  bool deterministic = false;
  // The optimizer minimises the loss of all samples at once: the first of several ranks only says
  // what to do, and the others lease portions (strategy/batch/).
  bool whole = false;

  int workers() const { return ranks - servers; }
  bool in_step() const { return pace == PaceKind::kInStep; }
  // Its workers take leases, and it keeps the run.
  bool leases_work() const { return centre == CentreKind::kServer || in_memory(); }
  // Workers add to the centre by themselves; the server only leases.
  bool in_memory() const { return centre == CentreKind::kMemory; }
  // In step, but each worker's or group's update is its own between meetings.
  bool local_steps() const { return centre == CentreKind::kGroup; }
  bool clocked() const { return pace == PaceKind::kClock; }  // a lease is a shard of a step
  bool waits() const { return pace == PaceKind::kFree && stale == StaleKind::kWait; }
  bool rounds() const { return pace == PaceKind::kRound; }
  // A client may have samples of its own: only weights leave it.
  bool own_data() const { return leases_work() && !clocked() && merge->takes_weights; }
  // Workers of a group hold the same weights: one of them speaks for all.
  bool led() const { return groups > 0 && inner->in_step; }
  int clients() const { return led() ? groups : workers(); }  // that take leases
  // Of a worker with `share` steps in an epoch. 0: at its end, where all wait for all.
  int steps_between_meetings(int64_t share) const;
  // Nobody ever waits, not for the last of an epoch either: epochs flow into each other. Where
  // gradients move the centre the border bounds how stale they become.
  bool open_epochs() const { return pace == PaceKind::kFree && merge->takes_weights; }

  int GroupOf(int worker) const;         // group g of G has workers [W g / G, W (g + 1) / G)
  int FirstOf(int group) const;          // of its workers
  int LeaderOf(int client) const;        // the worker that speaks with the server
  std::vector<int> GroupOfRank() const;  // -1: in none; empty: there are no groups
};

// What a strategy must fit.
struct StrategyScene {
  int ranks = 1;
  bool deterministic = false;
  bool one_process = true;  // what the transport gives the ranks
  bool shared_memory = true;
  bool host_memory = true;  // the host reads what a rank computes with where it lies
  const OptimizerOptions* optimizer = nullptr;  // null: not known yet, nothing is refused for it
};

// UsageError: the first refusal that holds, see refusals.cc.
StrategyChoice ResolveStrategy(const StrategyOptions& options, const StrategyScene& scene);

// As many ranks as leave so many that train. UsageError: no number does.
int RanksFor(const StrategyOptions& options, int workers);

// What can be said only when the epoch is cut into steps.
void CheckPlan(const StrategyChoice& choice, const Plan& plan);

// Why the sum of the ranks' gradients cannot be compared with what a rank computes alone; empty: it
// can.
std::string WhyNoSelfTest(const StrategyChoice& choice);

// The rank that writes the run: with a server the first of them, which holds all that is to be
// kept.
constexpr int kRecordingRank = 0;

}  // namespace trireme
