// Activations, add, dropout and stochastic depth: value by value.
#include <cmath>

#include "engine/cuda/activations.h"
#include "engine/cuda/add.h"
#include "engine/cuda/dropout.h"
#include "engine/cuda/kernels.h"
#include "engine/cuda/tokens.h"

namespace trireme::cuda {
namespace {

size_t SizeOf(const Call& call, const Shard& shard) { return shard.count * call.outputs[0].size(); }

void Activate(Activation f, const Call& call, const Shard& shard, Context& context) {
  LaunchActivation(context.stream(), f, call.inputs[0].array(), call.outputs[0].array(),
                   SizeOf(call, shard));
}

void ActivateGrad(Activation f, const Call& call, const Shard& shard, Context& context) {
  LaunchActivationGrad(context.stream(), f, call.inputs[0].array(), call.inputs[1].array(),
                       call.outputs[0].array(), SizeOf(call, shard));
}

}  // namespace

void Relu(const Call& call, const Shard& shard, Context& context) {
  Activate(Activation::kRelu, call, shard, context);
}
void ReluGrad(const Call& call, const Shard& shard, Context& context) {
  ActivateGrad(Activation::kRelu, call, shard, context);
}
void Sigmoid(const Call& call, const Shard& shard, Context& context) {
  Activate(Activation::kSigmoid, call, shard, context);
}
void SigmoidGrad(const Call& call, const Shard& shard, Context& context) {
  ActivateGrad(Activation::kSigmoid, call, shard, context);
}
void Tanh(const Call& call, const Shard& shard, Context& context) {
  Activate(Activation::kTanh, call, shard, context);
}
void TanhGrad(const Call& call, const Shard& shard, Context& context) {
  ActivateGrad(Activation::kTanh, call, shard, context);
}

void Gelu(const Call& call, const Shard& shard, Context& context) {
  Activate(Activation::kGelu, call, shard, context);
}
void GeluGrad(const Call& call, const Shard& shard, Context& context) {
  ActivateGrad(Activation::kGelu, call, shard, context);
}

void Add(const Call& call, const Shard& shard, Context& context) {
  LaunchAdd(context.stream(), call.inputs[0].array(), call.inputs[1].array(),
            call.outputs[0].array(), SizeOf(call, shard));
}

void AddReluGrad(const Call& call, const Shard& shard, Context& context) {
  LaunchAddReluGrad(context.stream(), call.inputs[0].array(), call.inputs[1].array(),
                    call.inputs[2].array(), call.outputs[0].array(), SizeOf(call, shard));
}

namespace {

// Of samples with so many random numbers each.
Mask MaskOf(const Call& call, const Shard& shard, size_t sample_size) {
  const double rate = call.attributes().rate;
  return {.numbers = shard.numbers,
          .layer = uint64_t(call.attributes().layer),
          .sample_size = sample_size,
          .least = uint64_t(std::ceil(rate * 0x1p53)),
          .scale = float(1 / (1 - rate))};
}

}  // namespace

// Forward and backward alike: the mask is a function of the sample's position, drawn anew.
void Dropout(const Call& call, const Shard& shard, Context& context) {
  LaunchDropout(context.stream(), MaskOf(call, shard, call.inputs[0].size()),
                call.inputs[0].array(), call.outputs[0].array(), SizeOf(call, shard));
}

void StochasticDepth(const Call& call, const Shard& shard, Context& context) {
  LaunchStochasticDepth(context.stream(), MaskOf(call, shard, 1), shard.count,
                        int(call.inputs[0].size()), call.inputs[0].array(),
                        call.outputs[0].array());
}

}  // namespace trireme::cuda
