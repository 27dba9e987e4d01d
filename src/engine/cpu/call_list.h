#pragma once
#include <vector>

#include "engine/cpu/call.h"
#include "graph/program.h"

namespace trireme::cpu {

// A program's instructions with their kernels chosen and their pointers resolved into an arena that
// someone else owns. One thread at a time.
class CallList {
 public:
  // The arena holds activations, then scratch: `ArenaFloats` floats, 64-byte aligned. All arguments
  // but the table outlive the list.
  CallList(const Program& program, const KernelTable& kernels, Team& team, float* arena);
  static size_t ArenaFloats(const Program& program, const KernelTable& kernels, int threads);

  int size() const { return static_cast<int>(calls_.size()); }

  // Runs instructions [first, last). A training program's summand is written, or with `accumulate`
  // added to; running the last instruction completes its tail. An empty batch writes zeros.
  void Run(const Batch& batch, const float* state, float* summand, bool accumulate, int first,
           int last);

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
  float* const arena_;
  float* scratch_;
  std::vector<Step> calls_;
  std::vector<BatchInput> batch_inputs_;  // operands that point into the batch
};

}  // namespace trireme::cpu
