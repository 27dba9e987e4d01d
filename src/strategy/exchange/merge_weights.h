#pragma once
#include "strategy/exchange/centre.h"
#include "strategy/exchange/merge.h"

namespace trireme {

// Weights go to the centre, which mixes them with its own: "halve" and "average". At a free pace
// the worker waits for nothing: it goes on with the newest weights that the server has broadcast,
// which may lack its own push, or with its own if none are newer. In rounds the server answers with
// the mean of all. Weights are replaced only then: in between, work would vanish that is leased and
// not pushed.
class MergeWeights : public Merge {
 public:
  MergeWeights(Centre& centre, bool rounds) : centre_(centre), rounds_(rounds) {}
  void Begin(Replica& replica) override;
  void Meet(Replica& replica, PushHead head, std::span<const int64_t> leases) override;
  void Reload(Replica& replica) override;

 private:
  void Take(Replica& replica, const Centre::Snapshot& centre);

  Centre& centre_;
  const bool rounds_;
  int64_t version_ = 0;
};

}  // namespace trireme
