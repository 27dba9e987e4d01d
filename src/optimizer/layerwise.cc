#include "optimizer/layerwise.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "base/assert.h"
#include "flat/host_memory.h"

namespace trireme {
namespace {

// The lengths of tensors, and of what would move them. The host has to know them before it can
// enqueue the update: that waits for the queue once a step.
class Lengths {
 public:
  struct Tensor {
    Range range;
    bool adapts = false;            // no bias, no norm
    double rate = 1;                // factor
    double weights = 0, moves = 0;  // where it adapts
  };

  Lengths(const Layout& layout, Device& device)
      : squares_(device, UpdateScale::kSize + 1 + kFloats * layout.parameters.size()),
        on_host_(device, squares_.slice().size) {
    for (size_t p = 0; p < layout.parameters.size(); ++p) {
      if (layout.IsFrozen(layout.parameters[p])) continue;
      tensors_.push_back({layout.parameters[p], layout.decays[p], layout.rate(p)});
    }
  }

  // Reads the factor of the gradients, too: 0 skips the update.
  double Measure(Queue& queue, Slice scale, Slice weights, Slice moves) {
    const Slice squares = squares_;
    flat::Copy(queue, scale, squares.Sub(0, UpdateScale::kSize));
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const auto [begin, size] = tensors_[i].range;
      if (!tensors_[i].adapts) continue;
      const Slice w = weights.Sub(begin, size), m = moves.Sub(begin, size);
      flat::Dot(queue, w, w, squares.Sub(PlaceOf(i), flat::kDoubleFloats));
      flat::Dot(queue, m, m, squares.Sub(PlaceOf(i) + flat::kDoubleFloats, flat::kDoubleFloats));
    }
    flat::Get(queue, squares, on_host_);
    queue.Sync();
    for (size_t i = 0; i < tensors_.size(); ++i) {
      double pair[2];
      std::memcpy(pair, on_host_.data() + PlaceOf(i), sizeof(pair));
      tensors_[i].weights = std::sqrt(pair[0]);
      tensors_[i].moves = std::sqrt(pair[1]);
    }
    return double(on_host_[UpdateScale::kFactor]);
  }
  std::span<const Tensor> tensors() const { return tensors_; }

 private:
  static constexpr size_t kFloats = 2 * flat::kDoubleFloats;
  static size_t PlaceOf(size_t i) { return UpdateScale::kSize + 1 + kFloats * i; }
  static_assert((UpdateScale::kSize + 1) % flat::kDoubleFloats == 0);  // doubles are aligned

  Buffer squares_;  // an UpdateScale, then those of each tensor
  HostBuffer<float> on_host_;
  std::vector<Tensor> tensors_;
};

std::unique_ptr<Rule> AdamOf(OptimizerOptions options) {
  options.name = "adam";
  return MakeRule(options);
}

// A tensor that is zero, or does not move, has no ratio.
double Ratio(double above, double below) { return above > 0 && below > 0 ? above / below : 1; }

// ratio = trust |w| / (|g| + decay |w|)
// velocity = momentum velocity + rate ratio (g + decay w);  w -= velocity
class LarsRule : public Rule {
 public:
  explicit LarsRule(const OptimizerOptions& o)
      : trust_(o.trust), momentum_(float(o.momentum)), decay_(o.weight_decay) {}
  std::span<const char* const> keeps() const override {
    static constexpr const char* kNames[] = {"velocity"};
    return {kNames, momentum_ != 0 ? size_t{1} : size_t{0}};
  }
  void Prepare(const Layout& layout, Device& device) override { lengths_.emplace(layout, device); }
  void Apply(Queue& queue, const Update& u) override {
    TRIREME_ASSERT(lengths_ && u.gradients.unwritten.empty());
    const Slice gradients = u.gradients.values;
    const double factor = lengths_->Measure(queue, u.scale, u.weights, gradients);
    if (factor == 0) return;
    for (const auto& [range, adapts, own_rate, weights, moves] : lengths_->tensors()) {
      const double decay = adapts ? decay_ : 0;
      const double ratio = adapts ? Ratio(trust_ * weights, factor * moves + decay * weights) : 1.0;
      const double rate = u.rate * own_rate * ratio;
      const Slice g = gradients.Sub(range.begin, range.size);
      const Slice w = u.weights.Sub(range.begin, range.size);
      if (momentum_ == 0) {
        flat::Blend(queue, float(-rate * factor), g, float(1 - rate * decay), w);
        continue;
      }
      const Slice velocity = u.own[0].Sub(range.begin, range.size);
      flat::Blend(queue, float(rate * factor), g, momentum_, velocity);
      if (decay > 0) flat::Axpy(queue, float(rate * decay), w, velocity);
      flat::Axpy(queue, -1, velocity, w);
    }
  }

 private:
  const double trust_;
  const float momentum_;
  const double decay_;
  std::optional<Lengths> lengths_;
};

// mean, square and what Adam makes of them: r. move = r + decay w
// w -= rate |w| / |move| move
class LambRule : public Rule {
 public:
  explicit LambRule(const OptimizerOptions& o) : adam_(AdamOf(o)), decay_(o.weight_decay) {}
  std::span<const char* const> keeps() const override { return adam_->keeps(); }
  size_t spare() const override { return 1; }
  void Prepare(const Layout& layout, Device& device) override { lengths_.emplace(layout, device); }
  void Apply(Queue& queue, const Update& u) override {
    TRIREME_ASSERT(lengths_);
    const Slice move = u.own[2];  // the other way round: what is added
    flat::Fill(queue, 0, move);
    Update adam = u;
    adam.rate = 1;
    adam.decays = {};
    adam.weights = move;
    adam_->Apply(queue, adam);
    for (const auto& tensor : lengths_->tensors()) {
      if (!tensor.adapts || decay_ == 0) continue;
      const auto [begin, size] = tensor.range;
      flat::Axpy(queue, float(-decay_), u.weights.Sub(begin, size), move.Sub(begin, size));
    }
    if (lengths_->Measure(queue, u.scale, u.weights, move) == 0) return;
    for (const auto& [range, adapts, own_rate, weights, moves] : lengths_->tensors()) {
      const double ratio = adapts ? Ratio(weights, moves) : 1.0;
      flat::Axpy(queue, float(u.rate * own_rate * ratio), move.Sub(range.begin, range.size),
                 u.weights.Sub(range.begin, range.size));
    }
  }

 private:
  const std::unique_ptr<Rule> adam_;
  const double decay_;
  std::optional<Lengths> lengths_;
};

}  // namespace

std::unique_ptr<Rule> MakeLars(const OptimizerOptions& o) { return std::make_unique<LarsRule>(o); }
std::unique_ptr<Rule> MakeLamb(const OptimizerOptions& o) { return std::make_unique<LambRule>(o); }

}  // namespace trireme
