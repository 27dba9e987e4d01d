#pragma once
#include <cstring>
#include <memory>
#include <span>

#include "engine/check/op_check.h"
#include "engine/cuda/call_list.h"
#include "engine/cuda/check.h"

// For tests: single operations on a card.

namespace trireme::cuda {

class CudaRunner : public check::OpRunner {
 public:
  explicit CudaRunner(Precision precision, bool only_plain = false)
      : queue_(card_),
        context_({.libraries = OpenLibraries(), .precision = precision}, queue_, kMostSums,
                 only_plain) {}

  void Run(std::shared_ptr<const Program> program, const Batch& batch,
           std::span<std::byte> activations, std::span<const float> state, std::span<float> summand,
           bool accumulate) override {
    card_.Select();
    const Needs needs = NeedsOf(*program, context_, program->capacity);
    const size_t scratch_bytes = std::max(needs.scratch_bytes, needs.aside_scratch_bytes);
    if (scratch_bytes > scratch_.bytes()) {
      scratch_ = {};
      scratch_ = CardMemory(card_, scratch_bytes, "scratch");
    }
    const Memory::Scratch scratch = {static_cast<std::byte*>(scratch_.data()), scratch_.bytes()};
    const CardMemory copies(card_, needs.copy_bytes, "copies");
    // What a kernel does not write it must not read.
    Poison(scratch_);
    Poison(copies);
    const CardMemory values = ToCard(std::as_bytes(activations));
    const CardMemory weights = ToCard(std::as_bytes(state));
    const CardMemory sums = ToCard(std::as_bytes(summand));
    const CardMemory labels = ToCard(std::as_bytes(batch.labels));
    const CardMemory class_weights = ToCard(std::as_bytes(batch.class_weights));
    const CardMemory mixes = ToCard(std::as_bytes(batch.mixes));
    CallList calls(*program, context_,
                   {.activations = static_cast<std::byte*>(values.data()),
                    .slots = {SampleSlot{.labels = static_cast<int32_t*>(labels.data()),
                                         .class_weights = static_cast<float*>(class_weights.data()),
                                         .mixes = static_cast<LabelMix*>(mixes.data())}},
                    .numbers = static_cast<ShardNumbers*>(numbers_.data()),
                    .copies = copies.data(),
                    .scratch = scratch,
                    .aside_scratch = scratch},
                   /*check=*/false);
    const auto* from = static_cast<const float*>(weights.data());
    auto* to = static_cast<float*>(sums.data());
    calls.WriteNumbers(batch);
    if (batch.count > 0) {
      calls.CopyWeights(from, 0, calls.size());
      calls.Run(batch, from, to, accumulate, 0, calls.size());
    } else {
      calls.RunEmpty(to, accumulate);
    }
    FromCard(values, activations);
    FromCard(sums, std::as_writable_bytes(summand));
    queue_.Sync();
  }

  const Conv& conv() const { return context_.conv; }

 private:
  static constexpr size_t kMostSums = 2 * 1024 + 1;

  CardMemory ToCard(std::span<const std::byte> bytes) {
    CardMemory memory(card_, bytes.size(), "test");
    if (!bytes.empty()) {
      Check(cudaMemcpyAsync(memory.data(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice,
                            queue_.stream()),
            "cudaMemcpyAsync");
    }
    return memory;
  }

  void FromCard(const CardMemory& memory, std::span<std::byte> bytes) {
    if (bytes.empty()) return;
    Check(cudaMemcpyAsync(bytes.data(), memory.data(), bytes.size(), cudaMemcpyDeviceToHost,
                          queue_.stream()),
          "cudaMemcpyAsync");
  }

  void Poison(const CardMemory& memory) {
    if (memory.bytes() == 0) return;
    Check(cudaMemsetAsync(memory.data(), 0xff, memory.bytes(), queue_.stream()), "cudaMemsetAsync");
  }

  CudaDevice card_{0};
  CudaQueue queue_;
  Context context_;
  const CardMemory numbers_{card_, sizeof(ShardNumbers), "test"};
  CardMemory scratch_;
};

}  // namespace trireme::cuda
