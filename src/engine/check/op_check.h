#pragma once
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <span>

#include "engine/check/op_case.h"
#include "graph/engine.h"

namespace trireme::check {

// How an engine runs a single operation, which its public interface cannot: a few lines in the
// engine's own test.
class OpRunner {
 public:
  virtual ~OpRunner() = default;

  // Runs the program as RunShard does, but with these activations instead of the executable's own:
  // inputs stand at their operands' offsets, outputs are to stand at theirs. An empty batch needs
  // to leave the right summand, no activations. `activations` is 64-byte aligned and has
  // program->activation_bytes, state and summand are as long as program->layout says.
  virtual void Run(std::shared_ptr<const Program> program, const Batch& batch,
                   std::span<std::byte> activations, std::span<const float> state,
                   std::span<float> summand, bool accumulate) = 0;
};

// What engine/ref makes of an operation: computed once, to compare with it what an engine makes of
// the same numbers on every instruction set and with every algorithm.
class Judgement {
 public:
  // All values and weights are such that `held` holds them exactly.
  explicit Judgement(const OpCase& c, Element held = Element::kFloat);
  ~Judgement();
  Judgement(const Judgement&) = delete;

  // Outputs, gradients, statistics and metrics, overwriting and accumulating; and that nothing
  // beside the outputs is touched. A number may differ by `tolerance` times the largest of its
  // tensor (at least 1).
  testing::AssertionResult Check(OpRunner& runner, double tolerance = 1e-5) const;

  // The same for `alike`: the case with another algorithm, or with values held in 16 bits, which
  // must then hold its numbers; outputs may differ by that rounding (bf16: 2^-8, fp16: 2^-11) more.
  testing::AssertionResult Check(OpRunner& runner, const OpCase& alike,
                                 double tolerance = 1e-5) const;

 private:
  struct Facts;
  const std::unique_ptr<const Facts> facts_;
};

}  // namespace trireme::check
