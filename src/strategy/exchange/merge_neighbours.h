#pragma once
#include <memory>

#include "strategy/exchange/merge.h"
#include "strategy/exchange/neighbour_inboxes.h"

namespace trireme {

// Asynchronous SGD in a partitioned global address space (Keuper, Pfreundt 2015). At a meeting a
// worker looks at what others have left in its inbox, mixes it with its own weights, always or only
// if its own steps lead nearer to it, and writes its weights into the inboxes of a few others. The
// centre is the mean of what all have written, for whoever wants to see it; no worker takes it but
// to begin.
class MergeNeighbours : public Merge {
 public:
  enum class Mixes { kAll, kNearer };
  // `alpha`: how far it goes towards a neighbour; 0: half of the way. `clients`: how many there
  // are.
  MergeNeighbours(Centre& centre, std::unique_ptr<NeighbourInboxes> inboxes, Mixes mixes,
                  float alpha, int clients)
      : centre_(centre),
        inboxes_(std::move(inboxes)),
        mixes_(mixes),
        alpha_(alpha > 0 ? alpha : 0.5f),
        part_(1 / float(clients)) {}
  void Begin(Replica& replica) override;
  // What lies in the inbox comes while the step is computed.
  void BeforeStep(Replica& replica, int left) override {
    if (left == 1) inboxes_->Prefetch(replica.state.size);
  }
  void Meet(Replica& replica, PushHead head, std::span<const int64_t> leases) override;
  void Reload(Replica& replica) override;

 private:
  void Take(Replica& replica);
  bool Nearer(Replica& replica);  // its own steps lead to what is in theirs_

  Centre& centre_;
  const std::unique_ptr<NeighbourInboxes> inboxes_;
  const Mixes mixes_;
  const float alpha_, part_;
  Buffer written_;          // the weights at the end of the last meeting
  Buffer theirs_;           // a neighbour's
  Buffer moved_by_, span_;  // since then; scratch
  Buffer product_;
};

}  // namespace trireme
