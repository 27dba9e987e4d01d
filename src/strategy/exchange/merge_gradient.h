#pragma once
#include "strategy/exchange/centre.h"
#include "strategy/exchange/merge.h"
#include "strategy/exchange/shared_weights.h"

namespace trireme {

// Gradients go to the centre, where the optimizer is (Downpour SGD; Dean et al. 2012): the sum of
// all since the last meeting. Where a worker takes several steps before it fetches or pushes, it
// also moves its own weights; so do workers that share weights, of which one fetches.
//
// As in the paper a fetch follows the push of the same step: the weights that a worker waits for
// hold all that it has done.
class MergeGradient : public Merge {
 public:
  struct Pace {
    int push = 1;        // steps between meetings
    int fetch = 1;       // steps between looks at the centre
    bool asks = false;   // for it; else the newest that the server has offered is taken
    bool waits = false;  // staleness is bounded by waiting: one fetch before each push's steps
    int64_t clock = -1;  // at least 0: weights are at most so many steps behind (Ho et al. 2013)
  };
  // `shared`: null, or the weights that a group shares.
  MergeGradient(Centre& centre, const Pace& pace, std::unique_ptr<SharedWeights> shared = nullptr)
      : centre_(centre), pace_(pace), shared_(std::move(shared)) {}
  void Begin(Replica& replica) override;
  bool updates() const override { return shared_ || pace_.push > 1 || pace_.fetch > 1; }
  bool pushes_gradients() const override { return true; }
  void BeforeStep(Replica& replica, int left) override;
  void AfterStep(Replica& replica, bool meets) override;
  void Meet(Replica& replica, PushHead head, std::span<const int64_t> leases) override;
  void Reload(Replica& replica) override;

 private:
  void Take(Replica& replica, const Centre::Snapshot& centre);
  void TakeNews(Replica& replica);
  void AskIfDue();
  bool fetches() const { return !shared_ || shared_->leads(); }
  // It asks for weights by its own steps, not by a clock or for each push.
  bool asks() const { return pace_.asks && !pace_.waits && pace_.clock < 0 && fetches(); }

  Centre& centre_;
  const Pace pace_;
  const std::unique_ptr<SharedWeights> shared_;
  Buffer sum_;           // of the gradients since the last meeting, if that can be several
  int summed_ = 0;       // steps since the last meeting
  int64_t steps_ = 0;    // since the weights were taken
  int64_t version_ = 0;  // of the weights
  int64_t from_ = 0;     // of the oldest that the sum is made from
};

}  // namespace trireme
