#pragma once
#include <memory>

#include "strategy/exchange/centre.h"
#include "strategy/exchange/merge.h"
#include "strategy/exchange/shared_weights.h"

namespace trireme {

// Hogwild (Recht, Re, Wright, Niu 2011) where nobody shares an address space: what a worker's own
// optimizer did to its weights since the last meeting is added to the centre, and the newest centre
// comes behind it while the next step is computed. When it is there, the worker goes on from it and
// from what it has done meanwhile. It is never further ahead than one meeting.
//
// Workers of a group that share weights (Noel, Osindero 2014) add their own moves there, too, and
// push them; one of them brings the centre's weights.
class MergeMoves : public Merge {
 public:
  // `shared`: null, or the weights that a group shares.
  explicit MergeMoves(Centre& centre, std::unique_ptr<SharedWeights> shared = nullptr)
      : centre_(centre), shared_(std::move(shared)) {}
  void Begin(Replica& replica) override;
  void Update(Replica& replica, const Gradient& sum) override;
  void BeforeStep(Replica& replica, int left) override;
  void AfterStep(Replica& replica, bool meets) override;
  void Meet(Replica& replica, PushHead head, std::span<const int64_t> leases) override;
  void Reload(Replica& replica) override;

 private:
  bool fetches() const { return !shared_ || shared_->leads(); }
  void TakeNews(Replica& replica);
  void Take(Replica& replica, const Centre::Snapshot& centre);

  Centre& centre_;
  const std::unique_ptr<SharedWeights> shared_;
  // All that was pushed led from the centre to `base_`, and `move_` is what was done since. With
  // shared weights the move grows step by step, and `base_` is what a step began with.
  Buffer base_, move_;
  Buffer own_;           // of shared weights: after this worker's update alone
  int64_t version_ = 0;  // of the weights
  int64_t from_ = 0;     // of the oldest that the move is made from
  int steps_ = 0;        // since the last meeting
};

}  // namespace trireme
