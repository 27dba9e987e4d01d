#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/cuda/array.h"
#include "engine/cuda/context.h"
#include "engine/cuda/numbers.h"
#include "engine/cuda/window.h"
#include "graph/engine.h"

// What an operation's host half sees: an instruction with its pointers resolved, and what changes
// from run to run. It launches kernels and calls libraries on the context's stream; it asks the
// card nothing and allocates nothing.

namespace trireme::cuda {

struct Value {
  void* data = nullptr;  // on the card
  Shape shape;
  Element element = Element::kFloat;
  Array array() const { return {data, element}; }
  float* floats() const { return static_cast<float*>(data); }
  uint8_t* bytes() const { return static_cast<uint8_t*>(data); }
  size_t size() const { return static_cast<size_t>(shape.size()); }  // of one sample
  size_t pixels() const { return size_t(shape.height) * size_t(shape.width); }
};

struct Call {
  const Instruction* instruction = nullptr;
  std::array<Value, 7> inputs;
  std::array<Value, 5> outputs;
  size_t copy = 0;     // of weights or of their gradient: where it begins in the copies, in numbers
  size_t metrics = 0;  // where they stand in a summand

  const Attributes& attributes() const { return instruction->attributes; }
  size_t parameter(int i) const { return instruction->parameters[size_t(i)].begin; }
  size_t statistic(int i) const { return instruction->statistics[size_t(i)].begin; }
};

struct Shard {
  const Batch* batch;  // for SumOverShards alone: what else it says lies on the card
  size_t count;        // samples, at least one
  const ShardNumbers* numbers;
  const int32_t* labels;
  const float* class_weights;  // null: all are 1
  const LabelMix* mixes;       // null: no sample is mixed
  const float* state;          // weights, then running statistics
  Array copies;                // of weights and of their gradients, as the libraries order them
  float* summand;              // null in evaluation
  bool accumulate;
  std::byte* scratch;  // 256-byte aligned
  size_t scratch_bytes;
};

using Kernel = void (*)(const Call&, const Shard&, Context&);
// Bytes of scratch memory for at most `samples` samples.
using ScratchSize = size_t (*)(const Call&, size_t samples, Context&);

struct KernelRow {
  std::string_view op;
  Kernel run;
  ScratchSize scratch = nullptr;  // null: none
  NarrowOperands narrow = {};
};

std::span<const KernelRow> Kernels();
const KernelRow* FindKernel(std::string_view op);  // null: no such kernel
NarrowOperands NarrowOperandsOf(const Node& node);

// What a product reads instead of its weights, which lie in the state as [kh][kw][in][out] (dense:
// [in][out]): nothing, the same in 16 bits, or [out][kh][kw][in] in the type of the products. Or it
// writes the gradient of the weights in that order.
enum class WeightCopy { kNone, kNarrow, kTurned, kTurnedGradient };
WeightCopy WeightCopyOf(const Instruction& instruction, Precision precision);

// A dense layer, or a convolution that looks at one pixel for each of its results: a product of a
// matrix with a row for each pixel and the weights [in][out].
inline bool IsProduct(const Attributes& a) {
  return a.kernel == 1 && a.stride == 1 && a.padding == 0;
}

inline Window WindowOf(const Attributes& a, const Shape& image, const Shape& result) {
  return {.height = image.height,
          .width = image.width,
          .channels = image.channels,
          .out_height = result.height,
          .out_width = result.width,
          .kernel = a.kernel,
          .stride = a.stride,
          .padding = a.padding};
}

}  // namespace trireme::cuda
