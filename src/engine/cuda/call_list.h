#pragma once
#include <array>
#include <vector>

#include "engine/cuda/kernels.h"
#include "engine/cuda/lanes.h"
#include "engine/cuda/weights.h"
#include "graph/program.h"

namespace trireme::cuda {

// What a program needs beside its activations for so many samples.
struct Needs {
  size_t scratch_bytes = 0, aside_scratch_bytes = 0;  // of the instructions of each stream
  size_t copy_bytes = 0;  // of weights and their gradients, in the libraries' order
};
Needs NeedsOf(const Program& program, Context& context, int samples);

// Doubles of the longest sums that batch-norm has over all ranks.
size_t MostSums(const Program& program);

// Where the samples of a whole shard lie.
struct SampleSlot {
  float* inputs = nullptr;
  int32_t* labels = nullptr;
  float* class_weights = nullptr;
  LabelMix* mixes = nullptr;
};
constexpr int kSlots = 2;  // the next shard's samples come while this one's are read
constexpr int SlotsOf(Mode mode) { return mode == Mode::kTrain ? kSlots : 1; }

// Where a program's values lie on the card: memory of somebody else.
struct Memory {
  std::byte* activations = nullptr;
  std::array<SampleSlot, kSlots> slots = {};
  ShardNumbers* numbers = nullptr;
  void* copies = nullptr;
  struct Scratch {
    std::byte* data = nullptr;
    size_t bytes = 0;
  };
  Scratch scratch, aside_scratch;
};

// A program's instructions with their kernels chosen and their pointers resolved. One thread at a
// time; the card is selected.
class CallList {
 public:
  // All arguments outlive the list. With `check` each operation is waited for. `aside`: null, or
  // takes what goes aside (lanes.h).
  CallList(const Program& program, Context& context, const Memory& memory, bool check,
           CudaQueue* aside = nullptr);

  int size() const { return static_cast<int>(calls_[0].size()); }

  // Where the samples of the work lie that is enqueued from here on.
  void Use(int slot) { slot_ = slot; }

  // Enqueues the numbers of the batch that the work after it reads. Nothing below enqueues anything
  // that depends on more of a batch than its count and whether its samples are mixed, but for
  // SumOverShards.
  void WriteNumbers(const Batch& batch);

  // Enqueues the copies of the weights that instructions [first, last) read; they stay for
  // backward.
  void CopyWeights(const float* state, int first, int last);

  // Enqueues instructions [first, last) of a batch with samples. A training program's summand is
  // written, or with `accumulate` added to.
  void Run(const Batch& batch, const float* state, float* summand, bool accumulate, int first,
           int last);

  // Enqueues what an empty batch leaves in a summand: zeros, and its vote.
  void RunEmpty(float* summand, bool accumulate);

  // Where a value of the program lies.
  float* Find(const Operand& operand) const;

 private:
  struct Step {
    Kernel run;
    Call call;
  };
  // Copies of weights, or of gradients, in the order of the instructions that need or make them.
  struct Copies {
    std::vector<MatrixCopy> list;
    std::vector<int> instructions;
    int tiles = 0;
    CardMemory list_on_card, copy_of_tile_on_card;
    void Add(int instruction, MatrixCopy copy);
    // Those of instructions [first, last).
    MatrixTiles Between(int first, int last) const;
  };
  void PlanCopies();
  // Puts the gradients that instructions [first, last) have made into the summand.
  void TurnGradients(cudaStream_t stream, const Shard& shard, int first, int last);
  // Behind kernels that belong to no operation.
  void CheckCopies(const char* what);
  void PutOnCard(Copies& copies);
  void RunOne(int index, const Shard& shard);

  const Program& program_;
  Context& context_;
  const Memory memory_;
  const bool check_;
  CudaQueue* const aside_;
  const std::vector<Lane> lanes_;
  std::array<std::vector<Step>, kSlots> calls_;
  int slot_ = 0;
  Copies weights_, gradients_;
};

}  // namespace trireme::cuda
