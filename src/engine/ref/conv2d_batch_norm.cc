#include <vector>

#include "engine/ref/kernel.h"

namespace trireme::ref {

void Conv2d(const Call&);
void Conv2dGradWeights(const Call&);
void Conv2dGradInput(const Call&);
void BatchNormGrad(const Call&);

// What conv2d made is computed again. Parameters are those of conv2d, then those of batch_norm.
void Conv2dBatchNormGrad(const Call& call) {
  const Tensor &x = call.inputs[0], &dy = call.inputs[3], &dx = call.outputs[0];
  std::vector<double> made(dy.values.size()), gradient(dy.values.size());
  const Tensor y = {dy.spec, made}, d_conv = {dy.spec, gradient};
  const std::ptrdiff_t own = call.attributes.bias ? 2 : 1;  // of conv2d
  const auto part = [&](bool conv, std::vector<Tensor> inputs, std::vector<Tensor> outputs) {
    const auto share = [&](const auto& all) {
      return conv ? std::decay_t<decltype(all)>(all.begin(), all.begin() + own)
                  : std::decay_t<decltype(all)>(all.begin() + own, all.end());
    };
    return Call{.attributes = call.attributes,
                .batch = call.batch,
                .inputs = std::move(inputs),
                .outputs = std::move(outputs),
                .weights = share(call.weights),
                .gradients = share(call.gradients)};
  };
  Conv2d(part(true, {x}, {y}));
  BatchNormGrad(part(false, {y, call.inputs[1], call.inputs[2], dy}, {d_conv}));
  Conv2dGradWeights(part(true, {x, d_conv}, {}));
  Conv2dGradInput(part(true, {d_conv}, {dx}));
}

}  // namespace trireme::ref
