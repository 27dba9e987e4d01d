#pragma once
#include <span>
#include <vector>

#include "flat/host_memory.h"
#include "strategy/exchange/exchange.h"
#include "transport/group.h"

namespace trireme {

// An anchor that all members of a group keep: each trains alone, and at a meeting every replica
// becomes the anchor, which has moved towards the mean of the replicas, each weighted by the
// samples it has trained on since the last meeting.
//
//   velocity = momentum velocity + (mean - anchor);  anchor += rate velocity
//
// McMahan et al. 2017 (federated averaging), Stich 2019 (local SGD); with momentum Chen, Huo 2016
// (blockwise model-update filtering), Wang et al. 2020 (SlowMo). Statistics are plainly averaged.
// Each replica's own momentum begins anew at a meeting.
//
// A meeting is one all-reduce of the state, after steps that are a function of their number alone.
// All members make the same calls.
class GroupAverage : public Exchange {
 public:
  struct Rates {
    float rate = 1, momentum = 0;  // of the anchor
  };
  // `period`: steps between meetings; 0: one each epoch.
  GroupAverage(Group& group, const Plan& plan, int period, Rates rates)
      : group_(group), plan_(plan), period_(period), rates_(rates) {}

  void Begin(Replica& replica) override;
  bool Agreed() const override { return all_ == 0; }
  void AfterStep(Replica& replica) override;
  void End(Replica& replica) override;

  void Snapshot(Replica& replica, Slice into) override;  // the mean now, without a meeting
  // At a meeting: what is not in the state.
  void Save(Replica& replica, StateWriter& writer) override;
  void Load(Replica& replica, const StateReader& reader) override;

  double waited_s() const override { return waited_s_; }
  std::optional<Volume> volume() const override { return group_.volume(); }

 private:
  void Meet(Replica& replica);                   // sums the votes to stop, too
  float SumMoves(Replica& replica, float vote);  // into moves_; the sum of votes
  void AgreeOnScale(Replica& replica);           // of the loss

  Group& group_;
  const Plan plan_;
  const int period_;
  const Rates rates_;
  int64_t own_ = 0, all_ = 0;  // samples since the last meeting
  Buffer anchor_, moves_, velocity_;
  HostBuffer<float> host_;  // the moves, then the vote
  std::vector<float> scratch_;
  double waited_s_ = 0;
};

}  // namespace trireme
