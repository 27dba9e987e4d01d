#pragma once
#include "strategy/exchange/centre.h"
#include "strategy/exchange/merge.h"

namespace trireme {

// Elastic averaging SGD (Zhang, Choromanska, LeCun 2015, algorithm 1: the asynchronous form; with
// Nesterov's momentum in the local optimizer, algorithm 2). Worker and centre pull at each other;
// batch-norm's running statistics are part of the state and follow.
class MergeElastic : public Merge {
 public:
  // `alpha` 0: the paper's rule, a moving rate of 0.9, shared among the clients that are here.
  // `waits`: staleness is bounded by waiting for the centre, not for long after it was given.
  MergeElastic(Centre& centre, float alpha, bool waits = false)
      : centre_(centre), alpha_(alpha), waits_(waits) {}
  void Begin(Replica& replica) override;
  // The centre comes while steps are computed: as many local steps older as it takes to come, and
  // nobody waits for it.
  void BeforeStep(Replica& replica, int left) override;
  void Meet(Replica& replica, PushHead head, std::span<const int64_t> leases) override;
  void Reload(Replica& replica) override;

 private:
  Centre& centre_;
  const float alpha_;
  const bool waits_;
  Buffer copy_, pull_;  // of the centre; what both give up
  double began_ = 0;    // the last step; 0: none
  double step_s_ = 0;   // what a step takes, on average
  bool asked_ = false;  // for the next meeting's centre
};

}  // namespace trireme
