#pragma once
#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "base/label.h"
#include "graph/engine.h"

namespace trireme::ref {

// A value of an instruction: `samples` times the shape (once, if it is the shard's).
struct Tensor {
  ValueSpec spec;
  std::span<double> values;

  const Shape& shape() const { return spec.shape; }
  double* sample(int64_t n) const { return values.data() + n * spec.shape.size(); }
};

// What a kernel is called with. Bytes are doubles here, too.
struct Call {
  const Attributes& attributes;
  const Batch& batch;
  std::vector<Tensor> inputs, outputs;                    // outputs begin as zeros
  std::vector<std::span<const double>> weights, running;  // of the node's parameters, statistics
  // Their stretches of the summand, and its last values. Kernels add; who calls has put zeros
  // there or what is to be accumulated.
  std::vector<std::span<double>> gradients, seen;
  std::span<double> metrics;

  int64_t samples() const { return batch.count; }

  // What a sample should be, and what the loss against it counts: all of it, or its share if the
  // sample is mixed, times the weight of its class.
  struct Aim {
    int32_t label;
    double counts;
  };
  std::array<Aim, 2> Aims(int64_t sample) const {
    const int32_t label = batch.labels[size_t(sample)];
    if (batch.mixes.empty()) return {{{label, Weight(label)}, {label, 0}}};
    const auto [other, share] = batch.mixes[size_t(sample)];
    return {{{label, (1 - double(share)) * Weight(label)}, {other, double(share) * Weight(other)}}};
  }
  // What output `i` of the first input should be then: 1 for the class and 0 for others; a single
  // output is a number itself.
  double Target(const Aim& aim, int64_t i) const {
    return inputs[0].shape().size() == 1 ? NumberOfLabel(aim.label) : i == aim.label ? 1 : 0;
  }
  // Of what comes behind the loss.
  double GradientScale() const { return batch.loss_scale * batch.ScaleOnHost(); }

 private:
  double Weight(int32_t label) const {
    return batch.class_weights.empty() ? 1 : double(batch.class_weights[size_t(label)]);
  }
};

using Kernel = void (*)(const Call&);

// Null if there is none. Fused operations have none: they are computed as the chain of their parts.
Kernel FindKernel(std::string_view op);
bool IsOfLoss(std::string_view op);  // a loss, its gradient, the tally

}  // namespace trireme::ref
