#include "engine/ref/engine.h"

#include <algorithm>
#include <vector>

#include "engine/ref/runner.h"
#include "graph/op.h"

namespace trireme {
namespace {

class RefExecutable : public Executable {
 public:
  RefExecutable(std::shared_ptr<const Program> program, Queue& queue)
      : Executable(std::move(program)),
        queue_(queue),
        runner_(*program_, ref::Runner::Narrow::kRounded) {}

  Event RunShard(const Batch& batch, Slice state, Slice summand, bool accumulate,
                 Ready ready) override {
    const Event began = queue_.Mark();
    if (batch.await_bucket) {  // it reads the whole state at once
      for (const Bucket& bucket : program_->buckets) queue_.Wait(batch.await_bucket(bucket));
    }
    const Event arrived = queue_.Mark();
    Run(batch, state, summand, accumulate);
    if (batch.marks) {
      const double border_s = arrived.FiredAt() + runner_.forward_s();
      *batch.marks = {.began = began,
                      .border = Event::Fired(border_s),
                      .ended = Event::Fired(border_s + runner_.backward_s()),
                      .waits = {{began, arrived}}};
    }
    std::ranges::copy(summand_, summand.host().begin());
    const Event done = queue_.Record();
    if (ready) {
      for (const Bucket& bucket : program_->buckets) ready(bucket, done);
    }
    return done;
  }

  void Evaluate(const Batch& batch, Slice state, const Results& results) override {
    Run(batch, state, {}, false);
    Give(program_->logits, results.logits);
    Give(program_->probabilities, results.probabilities);
    Give(program_->losses, results.losses);
  }

 private:
  void Run(const Batch& batch, Slice state, Slice summand, bool accumulate) {
    const auto weights = state.host();
    state_.assign(weights.begin(), weights.end());
    summand_.resize(program_->layout.summand);
    if (accumulate) std::ranges::copy(summand.host(), summand_.begin());
    runner_.Run(batch, state_, summand_, accumulate);
  }

  void Give(const Operand& operand, std::span<float> to) const {
    const std::vector<double>& from = runner_.value(operand.value);
    TRIREME_ASSERT(to.empty() || to.size() == from.size());
    if (!to.empty()) std::ranges::copy(from, to.begin());
  }

  Queue& queue_;
  ref::Runner runner_;
  std::vector<double> state_, summand_;
};

}  // namespace

bool RefEngine::Computes(std::string_view op) const {
  if (ref::FindKernel(op)) return true;
  // A test's own fusion may not be in the list of operations.
  const auto own = std::ranges::find(
      fusions_, op, [](const Fusion& fusion) { return std::string_view(fusion.op->name); });
  const auto parts = (own != fusions_.end() ? *own->op : FindOp(op)).parts;
  return parts.size() > 0 &&
         std::ranges::all_of(parts, [this](const char* part) { return Computes(part); });
}

// All but what losses and their gradients read and make: that is float32 in every engine.
NarrowOperands RefEngine::NarrowOperandsOf(const Node& node) const {
  if (!halves() || ref::IsOfLoss(node.op->name)) return {};
  return {.inputs = ~0u, .outputs = ~0u, .alike = false};
}

std::unique_ptr<Executable> RefEngine::Load(std::shared_ptr<const Program> program, Queue& queue) {
  return std::make_unique<RefExecutable>(std::move(program), queue);
}

}  // namespace trireme
