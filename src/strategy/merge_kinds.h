#pragma once
#include <memory>
#include <span>
#include <string_view>

namespace trireme {

class CentreRule;
class Client;
class Device;
class Merge;
class SharedWeights;
struct Layout;
struct StrategySetup;

// What becomes of an update that is staler than strategy.staleness.
enum class StaleKind {
  kWait,   // nobody gets so far
  kScale,  // it counts less
  kDrop,   // its positions are leased again
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
  bool answers = false;   // at a free pace: the server answers each push with its weights

  // With a server; null: there is none for it.
  struct WorkerNeeds {
    const StrategySetup& setup;
    Client& client;
    std::unique_ptr<SharedWeights> shared;  // by a group; may be null
  };
  std::unique_ptr<Merge> (*make)(WorkerNeeds needs) = nullptr;
  struct RuleNeeds {
    const StrategySetup& setup;
    const Layout& layout;  // of what this server holds
    int clients;
    Device& device;
  };
  std::unique_ptr<CentreRule> (*rule)(const RuleNeeds& needs) = nullptr;
};

std::span<const MergeKind> MergeKinds();
const MergeKind& FindMerge(std::string_view name);
const MergeKind& AverageMerge();  // of the members of a group

}  // namespace trireme
