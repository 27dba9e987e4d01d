#pragma once
#include "strategy/client.h"
#include "strategy/merge.h"

namespace trireme {

// Elastic averaging SGD (Zhang, Choromanska, LeCun 2015, algorithm 1: the asynchronous form; with
// momentum in the local optimizer, algorithm 2). Worker and centre pull at each other; batch-norm's
// running statistics are part of the state and follow.
class MergeElastic : public Merge {
 public:
  // `alpha` 0: the paper's rule, a moving rate of 0.9, shared among the clients that are here.
  MergeElastic(Client& centre, float alpha) : client_(centre), alpha_(alpha) {}
  void Begin(Replica& replica) override;
  // The centre comes while the step is computed: one local step older, and nobody waits for it.
  void BeforeStep(Replica&, bool meets) override {
    if (meets) client_.Prefetch();
  }
  void Meet(Replica& replica, PushHead head, std::span<const int64_t> leases) override;
  void Reload(Replica& replica) override;

 private:
  Client& client_;
  const float alpha_;
  Buffer centre_, pull_;
};

}  // namespace trireme
