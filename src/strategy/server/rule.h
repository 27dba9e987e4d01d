#pragma once
#include <memory>
#include <vector>

#include "base/state_io.h"
#include "flat/device.h"
#include "optimizer/updater.h"

namespace trireme {

// What pushes do to the centre. One thread: the server's.
class ServerRule {
 public:
  // One push, or all that a clock or a round waited for, in order.
  struct Part {
    Slice body;           // gradients and statistics, weights, or moves; in host memory, to spoil
    int64_t samples = 0;  // that were used for it
  };
  virtual ~ServerRule() = default;
  // `step`: the run's progress, for schedules. `share`: less than 1 for what is too stale.
  virtual void Apply(Queue& queue, std::span<const Part> parts, int64_t step, float share,
                     Slice centre) = 0;
  virtual void Save(Queue&, StateWriter&) const {}
  virtual void Load(Queue&, const StateReader&) {}
};

// centre += what was pushed: elastic averaging, whose workers send their pull.
std::unique_ptr<ServerRule> MakeAddRule();

// centre = (1 - a) centre + a weights. a is `mixing` for a push of `typical` samples and in
// proportion for others (a client that did twice the work weighs twice), 1/2 for all with typical
// = 0. "halve" of the first asynchronous servers; else asynchronous federated averaging (Xie,
// Koyejo, Gupta 2019).
std::unique_ptr<ServerRule> MakeMixRule(float mixing, double typical);

// One step of the optimizer, at the centre, with the sum of the parts in their order.
std::unique_ptr<ServerRule> MakeUpdateRule(const OptimizerOptions& options,
                                           const Schedule& schedule, const Layout& layout,
                                           Device& device);

// A round of local SGD: moves by the mean of the weights, each by its samples (McMahan et al.
// 2017), minus the centre, with momentum (Hsu, Qi, Brown 2019). Statistics become their mean.
std::unique_ptr<ServerRule> MakeRoundRule(float momentum, const Layout& layout, Device& device);

}  // namespace trireme
