#pragma once
#include <span>
#include <vector>

#include "strategy/strategy.h"
#include "transport/group.h"

namespace trireme {

// A centre that all members of a group keep: each trains alone, and at a meeting every replica
// becomes the anchor, which has moved towards the mean of the replicas, each weighted by the
// samples it has trained on since the last meeting.
//
//   velocity = momentum velocity + (mean - anchor);  anchor += rate velocity
//
// McMahan et al. 2017 (federated averaging), Stich 2019 (local SGD); with momentum Chen, Huo 2016
// (blockwise model-update filtering), Wang et al. 2020 (SlowMo). Statistics are plainly averaged.
// Each replica's own momentum begins anew at a meeting.
//
// A meeting is one all-reduce of the state. Called on the worker's thread; where it says so, all
// members call it.
class GroupCentre {
 public:
  struct Rates {
    float rate = 1, momentum = 0;  // of the anchor
  };
  GroupCentre(Group& group, Rates rates) : group_(group), rates_(rates) {}

  void Begin(Replica& replica);
  void Count(int64_t own, int64_t all);  // samples of a step: this replica's, all replicas'
  void Meet(Replica& replica);           // all; sums the votes to stop, too
  bool agreed() const { return all_ == 0; }

  void Average(Replica& replica, Slice into);  // all; the mean now, without a meeting

  // At a meeting: what is not in the state.
  void Save(Replica& replica, StateWriter& writer) const;
  void Load(Replica& replica, const StateReader& reader);

  double waited_s() const { return waited_s_; }
  Volume volume() const { return group_.volume(); }

 private:
  float SumMoves(Replica& replica, float vote);  // into moves_; the sum of votes

  Group& group_;
  const Rates rates_;
  int64_t own_ = 0, all_ = 0;  // samples since the last meeting
  Buffer anchor_, moves_, velocity_;
  std::vector<float> host_, scratch_;
  double waited_s_ = 0;
};

}  // namespace trireme
