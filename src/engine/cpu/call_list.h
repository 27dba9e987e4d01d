#pragma once
#include <vector>

#include "engine/cpu/call.h"
#include "graph/program.h"

namespace trireme::cpu {

// A program's instructions with their kernels chosen and their pointers resolved into activations
// that someone else owns. One thread at a time.
class CallList {
 public:
  // `activations` has the program's activation_bytes, `scratch` ScratchFloats floats, both 64-byte
  // aligned. All arguments but the table outlive the list.
  CallList(const Program& program, const KernelTable& kernels, Team& team, std::byte* activations,
           float* scratch);
  static size_t ScratchFloats(const Program& program, const KernelTable& kernels, int threads);

  int size() const { return static_cast<int>(calls_.size()); }

  // Runs instructions [first, last). A training program's summand is written, or with `accumulate`
  // added to; running the last instruction completes its tail. An empty batch writes zeros.
  // `unwritten` may take some gradients instead; not with `accumulate`.
  void Run(const Batch& batch, const float* state, float* summand, bool accumulate, int first,
           int last, Unwritten* unwritten = nullptr);

  // Where a value of the program lies; `batch` is the one of the last Run.
  const float* Find(const Operand& operand, const Batch& batch) const;

 private:
  struct Step {
    Kernel run;
    Call call;
  };
  struct BatchInput {
    int step, input;
  };

  const Program& program_;
  Team& team_;
  std::byte* const activations_;
  float* const scratch_;
  std::vector<Step> calls_;
  std::vector<BatchInput> batch_inputs_;  // operands that point into the batch
};

}  // namespace trireme::cpu
