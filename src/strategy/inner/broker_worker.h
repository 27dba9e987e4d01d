#pragma once
#include <algorithm>

#include "base/assert.h"
#include "base/clock.h"
#include "strategy/inner/broker.h"
#include "strategy/inner/inner.h"

namespace trireme {

// One worker of `bsp`: reads the parent model where the broker keeps it, brings its summands to the
// broker's barrier after backward. No traffic: everything lies in one process.
class InnerBroker : public Inner {
 public:
  InnerBroker(Broker& broker, int worker, int summands)
      : broker_(broker), worker_(worker), summands_(summands) {}
  ~InnerBroker() override { broker_.Leave(worker_); }

  int Summands() const override { return summands_; }
  void Begin(Replica& r) override { TRIREME_ASSERT(r.device.host_visible()); }  // refusals.cc
  void Agree(Replica& r, FunctionRef<void()> update) override {
    const Stopwatch watch;
    const size_t parts = std::min(r.work.shards.size(), r.summands.size());
    broker_.Meet(worker_, {.parts = r.summands.first(parts),
                           .first_shard = parts ? r.work.shards[0].index : 0,
                           .into = r.summands[0],
                           .state = r.state,
                           .scale = r.updater.scale(),
                           .metrics = {r.layout.loss(), Layout::kStepMetrics},
                           .update = [update] { update(); }});
    waited_s_ += watch.seconds();
  }
  double waited_s() const override { return waited_s_; }

 private:
  Broker& broker_;
  const int worker_, summands_;
  double waited_s_ = 0;
};

}  // namespace trireme
