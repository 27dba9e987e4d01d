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

// Outputs, gradients, statistics and tallies of an operation against engine/ref, overwriting and
// accumulating; and that nothing beside the outputs is touched. A number may differ by `tolerance`
// times the largest of its tensor (at least 1). With `short_numbers` all values and weights are
// such that bf16 holds them exactly; needed where the case's graph holds inputs in bf16. Outputs
// that it holds in bf16 may differ by that rounding (2^-8) more.
testing::AssertionResult CheckAgainstRef(OpRunner& runner, const OpCase& c, double tolerance = 1e-5,
                                         bool short_numbers = false);

}  // namespace trireme::check
