#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace trireme {

class ServerRule;
class Centre;
class Device;
class Merge;
class Schedule;
class NeighbourInboxes;
class SharedWeights;
struct Layout;
struct OptimizerOptions;

// What becomes of an update that is staler than strategy.staleness.
enum class StaleKind {
  kWait,   // nobody gets so far
  kScale,  // it counts less
  kDrop,   // its positions are leased again
};

// Of a worker's side.
struct MergeNeeds {
  Centre& centre;
  std::unique_ptr<SharedWeights> shared;      // by a group; may be null
  std::unique_ptr<NeighbourInboxes> inboxes;  // where the merge has them
  int push = 1, fetch = 1;  // steps between pushes, and between looks at the weights
  bool asks = true;         // for weights, else the server offers all new ones
  bool waits = false;       // for what would be too stale
  int64_t clock = -1;       // at least 0: weights are at most so many steps behind
  bool rounds = false;      // all push, then all go on with the result
  float alpha = 0;
  int clients = 1;  // of the run
};

// Of the server's side.
struct RuleNeeds {
  const Layout& layout;  // of what this server holds
  Device& device;
  const OptimizerOptions* optimizer = nullptr;  // for rules that update
  const Schedule* schedule = nullptr;
  int clients = 1;
  double samples = 0;  // of a usual push
  bool rounds = false;
  float alpha = 0, outer_momentum = 0;
};

// What a worker and the common weights do to each other (strategy.merge): a row of one list.
struct MergeKind {
  const char* name;
  const char* help;

  bool gradients;         // are sent (strategy.push, fetch), else weights (strategy.period)
  bool in_step = false;   // possible where all advance in step, without a centre
  bool averages = false;  // possible in rounds, and where the members of a group average
  StaleKind stale;        // at a free pace, where the recipe leaves it open
  bool scales = false;    // what is stale can count less
  bool waits = false;     // workers can wait for what would be too stale
  // Whole weights are pushed; at a free pace the server broadcasts its own, and nobody asks.
  bool takes_weights = false;
  // What a worker pushes is its own alone, also where it shares weights with others.
  bool own_alone = false;
  bool inboxes = false;      // workers write into each other's memory, beside a centre there
  bool adds = false;         // what is pushed is added to the centre, so that may lie in memory
  bool only_memory = false;  // ... and has to

  // With a server; null: there is none for it.
  std::unique_ptr<Merge> (*make)(MergeNeeds needs) = nullptr;
  std::unique_ptr<ServerRule> (*rule)(const RuleNeeds& needs) = nullptr;
};

std::span<const MergeKind> MergeKinds();
const MergeKind& FindMerge(std::string_view name);
const MergeKind& AverageMerge();  // of the members of a group

}  // namespace trireme
