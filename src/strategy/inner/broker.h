#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "flat/cpu/host.h"
#include "flat/layout.h"
#include "strategy/inner/strategy_common.h"
#include "transport/deadline.h"

namespace trireme {

// The broker of `bsp`: a cyclic barrier with an aggregator thread behind it. Workers bring their
// summands; when all have come, the aggregator adds them up in shard order, moves the parent model
// (the first worker's) by the sum, and opens the barrier; the others take the parent's weights.
// Lives longer than its workers. Thread-safe.
class Broker : public StrategyCommon {
 public:
  Broker(int workers, double timeout_s);
  ~Broker() override;

  // What a worker brings: its summands in shard order (none: it adds nothing) and which shard the
  // first is of, where the sum goes (for all but worker 0 its metrics only), the model, and how the
  // sum moves it.
  struct Share {
    std::span<const Slice> parts;
    int first_shard = 0;
    Slice into, state;
    Slice scale;                   // of the worker's updater
    Range metrics;                 // of `into`
    std::function<void()> update;  // of worker 0 is called: into moves state
  };
  // Returns when the parent has moved and `state` is equal to it, and `scale` to worker 0's. Throws
  // PeerLost if a worker has left.
  void Meet(int worker, const Share& share);
  void Leave(int worker) noexcept;  // it will not come again

 private:
  void Aggregate(std::stop_token stop);
  void SumInOrder();
  void SumInBlocks(Queue& queue, Slice sum);
  void AwaitRound(std::unique_lock<std::mutex>& lock, int worker, int64_t round);
  Slice Own(Slice slice);

  HostDevice device_;
  const double timeout_s_;
  std::mutex mutex_;  // guards all below
  std::condition_variable_any changed_;
  std::vector<Share> shares_;
  std::vector<const Share*>
      in_order_;  // of shards: which worker has which differs from step to step
  std::vector<Slice> parts_, cut_;
  Buffer block_;
  size_t arrived_ = 0, taken_ = 0;  // workers that have come, that have the new weights
  int64_t round_ = 0;
  int left_ = -1;  // a worker that has
  std::exception_ptr error_;
  std::jthread aggregator_;  // last: joins before the rest goes
};

}  // namespace trireme
