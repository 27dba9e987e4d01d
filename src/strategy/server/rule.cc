#include "strategy/server/rule.h"

#include <algorithm>
#include <array>

#include "base/assert.h"
#include "flat/arithmetic.h"

namespace trireme {
namespace {

class AddRule : public ServerRule {
 public:
  void Apply(Queue& queue, std::span<const Part> parts, int64_t, float share,
             Slice centre) override {
    for (const Part& part : parts) flat::Blend(queue, share, part.body, 1, centre);
  }
};

class MixRule : public ServerRule {
 public:
  MixRule(float mixing, double typical) : mixing_(mixing), typical_(typical) {}
  void Apply(Queue& queue, std::span<const Part> parts, int64_t, float share,
             Slice centre) override {
    for (const Part& part : parts) {
      const double weight = typical_ > 0 ? double(part.samples) / typical_ : 1;
      const float a = std::min(1.0f, share * mixing_ * float(weight));
      flat::Blend(queue, a, part.body, 1 - a, centre);
    }
  }

 private:
  const float mixing_;
  const double typical_;
};

class UpdateRule : public ServerRule {
 public:
  UpdateRule(const OptimizerOptions& options, const Schedule& schedule, const Layout& layout,
             Device& device)
      : weights_(layout.weights), updater_(options, schedule, layout, device) {}
  void Apply(Queue& queue, std::span<const Part> parts, int64_t step, float share,
             Slice centre) override {
    // A sum in order, as --deterministic adds in step.
    const Slice sum = parts[0].body;
    for (size_t i = 1; i < parts.size(); ++i) flat::Add(queue, parts[i].body, sum);
    if (share != 1) {  // of the gradients: statistics are what they are
      queue.Sync();
      const std::span<float> gradients = sum.Sub(0, weights_).host();
      for (float& gradient : gradients) gradient *= share;
    }
    Gradient gradient(sum);
    gradient.known_finite = parts.size() == 1;  // a push that is not finite does not get here
    updater_.Apply(queue, step, gradient, centre);
  }
  void Save(Queue& queue, StateWriter& writer) const override { updater_.Save(queue, writer); }
  void Load(Queue& queue, const StateReader& reader) override { updater_.Load(queue, reader); }

 private:
  const size_t weights_;
  Updater updater_;
};

class RoundRule : public ServerRule {
 public:
  RoundRule(float momentum, const Layout& layout, Device& device)
      : momentum_(momentum), mean_(device, layout.trained()), velocity_(device, layout.weights) {}
  void Apply(Queue& queue, std::span<const Part> parts, int64_t, float, Slice centre) override {
    double samples = 0;
    for (const Part& part : parts) samples += double(part.samples);
    flat::Fill(queue, 0, mean_);
    for (const Part& part : parts) {
      flat::Blend(queue, float(double(part.samples) / samples), part.body, 1, mean_);
    }
    flat::Blend(queue, -1, centre, 1, mean_);  // how far the mean is
    const Slice move = mean_, velocity = velocity_;
    const size_t weights = velocity.size, statistics = move.size - weights;
    flat::Blend(queue, 1, move.Sub(0, weights), momentum_, velocity);  // v = move + m v
    flat::Add(queue, velocity, centre.Sub(0, weights));
    if (statistics == 0) return;
    // A variance with a velocity would fall below zero.
    flat::Add(queue, move.Sub(weights, statistics), centre.Sub(weights, statistics));
  }
  void Save(Queue& queue, StateWriter& writer) const override {
    queue.Sync();
    const Slice velocity = velocity_;
    writer.Tensor(kVelocity, std::array{int64_t(velocity.size)}, velocity.host());
  }
  // Older versions saved the statistics' velocity behind the weights'.
  void Load(Queue& queue, const StateReader& reader) override {
    queue.Sync();
    const Slice velocity = velocity_;
    const int64_t state = int64_t(mean_.slice().size);
    const bool older = reader.Shape(kVelocity) == std::vector{state};
    std::vector<float> saved(older ? size_t(state) : velocity.size);
    reader.Tensor(kVelocity, std::array{int64_t(saved.size())}, saved);
    std::copy_n(saved.begin(), velocity.size, velocity.host().begin());
  }

 private:
  static constexpr const char* kVelocity = "centre.velocity";
  const float momentum_;
  Buffer mean_;      // of the state
  Buffer velocity_;  // of the weights
};

}  // namespace

std::unique_ptr<ServerRule> MakeAddRule() { return std::make_unique<AddRule>(); }

std::unique_ptr<ServerRule> MakeMixRule(float mixing, double typical) {
  return std::make_unique<MixRule>(mixing, typical);
}

std::unique_ptr<ServerRule> MakeUpdateRule(const OptimizerOptions& options,
                                           const Schedule& schedule, const Layout& layout,
                                           Device& device) {
  OptimizerOptions unscaled = options;
  unscaled.scales_loss = false;  // clients push gradients that are unscaled
  return std::make_unique<UpdateRule>(unscaled, schedule, layout, device);
}

std::unique_ptr<ServerRule> MakeRoundRule(float momentum, const Layout& layout, Device& device) {
  return std::make_unique<RoundRule>(momentum, layout, device);
}

}  // namespace trireme
