#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "base/team.h"
#include "engine/cpu/bf16/unit.h"
#include "engine/cpu/unwritten.h"
#include "flat/layout.h"
#include "graph/engine.h"

// What kernels see: instructions with their pointers resolved, and what changes from run to run.

namespace trireme::cpu {

struct Value {
  void* data = nullptr;
  Shape shape;
  Element element = Element::kFloat;
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  float* floats() const { return as<float>(); }
  uint8_t* bytes() const { return static_cast<uint8_t*>(data); }
  size_t size() const { return static_cast<size_t>(shape.size()); }  // of one sample
};

// Calls f(T()) with the type of the numbers that a value holds: float or BFloat.
template <class F>
void WithElement(const Value& value, const F& f) {
  if (value.element == Element::kBFloat) {
    f(BFloat());
  } else {
    f(float());
  }
}

template <class F>
void WithElements(const Value& a, const Value& b, const F& f) {
  WithElement(a, [&](auto one) { WithElement(b, [&](auto other) { f(one, other); }); });
}

struct Call {
  Attributes attributes;
  std::array<Value, 4> inputs;
  std::array<Value, 3> outputs;
  std::array<Range, 2> parameters;  // size 0: not there
  std::array<Range, 2> statistics;
  size_t loss = 0, correct = 0;      // where the metrics stand in a summand
  const MatrixUnit* unit = nullptr;  // computes products in bf16; null: float32
};

struct Shard {
  const Batch* batch;
  size_t count;        // samples, at least one
  const float* state;  // weights, then running statistics
  float* summand;      // null in evaluation
  bool accumulate;
  float* scratch;  // 64-byte aligned, as long as the kernel asked for
  Team* team;
  Unwritten* unwritten = nullptr;  // may take gradients instead of the summand; or null
};

using Kernel = void (*)(const Call&, const Shard&);
// Floats of scratch memory for at most `samples` samples.
using ScratchSize = size_t (*)(const Call&, size_t samples, size_t threads);

struct KernelRow {
  std::string_view op;
  Kernel run;
  ScratchSize scratch = nullptr;  // null: none
  NarrowOperands narrow = {};
};

// The kernels of one instruction set.
struct KernelTable {
  std::span<const KernelRow> rows;
  std::string_view target;
  const MatrixUnit* unit = nullptr;                  // for calls
  const KernelRow* Find(std::string_view op) const;  // null: no such kernel
};

// Of the best instruction set that the processor has (and hwy::SetSupportedTargetsForTest leaves).
KernelTable ChooseKernels();

}  // namespace trireme::cpu
