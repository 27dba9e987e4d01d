#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/observer.h"
#include "flat/device.h"
#include "flat/layout.h"
#include "optimizer/updater.h"
#include "strategy/step/staleness.h"
#include "strategy/step/work.h"

namespace trireme {

// One copy of the model, as a strategy sees it: flat slices, no layers.
struct Replica {
  Device& device;
  Queue& queue;  // of the engine: forward and backward run here
  Slice state;
  std::span<const Slice> summands;          // Strategy::Summands() of them
  std::span<const OuterProduct> unwritten;  // of summands[0]; see Strategy::OnlyUpdates
  const Layout& layout;
  std::span<const Bucket> buckets;
  Updater& updater;
  Observer observer;
  Work work;       // of the step that runs
  float vote = 0;  // to stop: for a rank without shards, whose summands carry it otherwise
};

// What became of a step's time besides the engine's, and of its bytes. Totals since the start.
struct Traffic {
  double communication_s = 0;  // the step stood still for communication
  double hidden_s = 0;         // communication went on while it did something else
  double update_s = 0;
  uint64_t bytes_sent = 0, bytes_received = 0;
};

// What a client of a server did, as the server saw it, or a worker of a shared state.
struct ClientStats {
  std::string name;
  bool here = false;
  int64_t pushes = 0, samples = 0;  // that counted
  int64_t refused = 0, removed = 0;
  double waited_s = 0;    // its worker stood still: for weights, for work
  int64_t overflows = 0;  // steps that it took again, with a smaller loss scale
  Staleness staleness;
};

enum class Role { kState, kSummand };
enum class Turn {
  kStep,      // `work` is to be done
  kEpochEnd,  // free pace: an epoch is drained; in step Work::ends_epoch says it
  kEnd,       // the run is over
};

}  // namespace trireme
