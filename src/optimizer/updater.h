#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/state_io.h"
#include "flat/arithmetic.h"
#include "flat/layout.h"
#include "optimizer/options.h"
#include "optimizer/rules.h"
#include "optimizer/schedule.h"

namespace trireme {

// CheckAndClip, optimizer and running statistics over one summand: runs wherever the update runs
// (on a replica, on a server, on shared weights). Clips, skips an update that is not finite, spares
// biases and norms from weight decay. Keeps the scale of the loss where gradients are float16.
// Not thread-safe.
class Updater {
 public:
  // Memory for the optimizer's own state is taken on `device`. `layout` is only read here.
  Updater(const OptimizerOptions& options, const Schedule& schedule, const Layout& layout,
          Device& device);

  // Update number `step` of the run (the schedule depends on it). Only enqueues. Where the loss is
  // scaled, the summand's gradients are.
  void Apply(Queue& queue, int64_t step, Gradient summand, Slice state);
  // Instead of it, where others update: looks at the summand, and the loss scale follows.
  void Check(Queue& queue, Slice summand);
  // May gradients be unwritten? To clip, for lengths of tensors or where rates differ, they may
  // not.
  bool forms_gradients() const { return clip_ <= 0 && !by_tensor_ && stretches_.size() == 1; }
  // Where the summand holds not gradients but how far weights have moved already (elsewhere, by
  // updates that are linear in the gradient; not a number where one was skipped): adds it up.
  void ApplyMove(Queue& queue, Slice summand, Slice state);
  // Forgets momentum and averages; the count of skipped updates and the loss scale stay.
  void Reset(Queue& queue);

  double rate(int64_t step) const { return schedule_.rate(step, falls_); }
  void FallTo(int64_t falls) { falls_ = falls; }  // how often the schedule has let the rate fall

  // The optimizer's own slices by name ("velocity"), in the layout of the weights.
  struct Named {
    const char* name;
    Slice slice;
  };
  std::span<const Named> slices() const { return named_; }

  bool scales_loss() const { return loss_.on(); }
  // An UpdateScale, as the last Apply or Check has left it. Replicas that update alike have equal
  // ones; where one updates for all, the others take its.
  Slice scale() const { return scale_; }
  // What the loss must be multiplied by: a number on the device. Empty: it is not scaled.
  Slice loss_scale() const {
    return scales_loss() ? scale_.slice().Sub(UpdateScale::kLoss, 1) : Slice();
  }

  // Updates skipped because a gradient or statistic was not finite. Blocks until the queue is done.
  int64_t Skipped(Queue& queue) const;
  using ScaleOnHost = std::array<float, UpdateScale::kSize>;
  ScaleOnHost GetScale(Queue& queue) const;  // likewise

  // Slices under "optimizer.<name>", counts under "optimizer.updates", "optimizer.skipped"; where
  // the loss is scaled "optimizer.loss_scale", "optimizer.loss_scale_steps". Both block until the
  // queue is done.
  void Save(Queue& queue, StateWriter& writer) const;
  void Load(Queue& queue, const StateReader& reader);

 private:
  // Weights with one rate: the rule is applied to each.
  struct Stretch {
    Range range;
    double rate = 1;  // factor
    Slice decays;
    std::vector<Slice> own;
  };
  void MakeStretches(const Layout& layout);

  const Schedule schedule_;
  const std::unique_ptr<Rule> rule_;
  const bool by_tensor_;
  const size_t weights_, statistics_;  // floats
  const float clip_;
  const LossScaling loss_;
  Buffer scale_;   // an UpdateScale
  Buffer decays_;  // weight decay by block of weights; empty: none
  std::vector<Buffer> memory_;
  std::vector<Slice> own_;  // of memory_
  std::vector<Named> named_;
  std::vector<Stretch> stretches_;
  int64_t falls_ = 0;
  int64_t count_ = 0;  // updates since the rule's slices were zero
};

}  // namespace trireme
