#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "optimizer/lbfgs.h"
#include "strategy/step/replica.h"

namespace trireme {

// The loss of some samples, as sums over them divided by the number of all samples.
struct PortionSums {
  int64_t samples = 0;
  double loss = 0;
  double correct = 0;  // predictions, not divided
};

// Computes gradients of portions of the samples, which never change. One thread.
class PortionGradient {
 public:
  virtual ~PortionGradient() = default;
  virtual Device& device() const = 0;
  virtual Queue& queue() = 0;
  virtual Slice state() = 0;           // what it computes with: weights, then statistics
  virtual void Want(int portion) = 0;  // Run comes to it after what was wanted before
  virtual bool HasRoom() const = 0;    // for Want
  // The gradient of the portion that was wanted first, with its share of the statistics; written or
  // added. Blocks.
  virtual PortionSums Run(Slice summand, bool accumulate) = 0;
};

// The loss of all samples as a function of the weights, as the rank sees it that minimises it.
class BatchObjective : public Objective {
 public:
  // At the point that was evaluated last.
  struct Seen {
    double loss = 0;  // mean, without a penalty
    double correct = 0;
    std::vector<float> statistics;  // of batch-norm: mean over the portions
  };
  const Seen& seen() const { return seen_; }

  // A vector from and to this rank's memory, whole. Rare: checkpoints.
  virtual void Put(int vector, std::span<const float> values) = 0;
  virtual void Get(int vector, std::span<float> values) = 0;

  // Everybody who computes holds the vector and these statistics as a state from now on.
  virtual void Show(int vector, std::span<const float> statistics) = 0;
  // The other ranks do what they were told to do at `what` (BatchWorker): something of all ranks.
  virtual void Meet(int64_t /*what*/) {}

  virtual int signal() const { return 0; }  // that another rank got
  virtual Traffic traffic() const { return {}; }
  virtual std::vector<ClientStats> worker_stats() const { return {}; }
  virtual void End(int /*signal*/) {}  // the others go, too, because of a signal or not

 protected:
  Seen seen_;
};

}  // namespace trireme
