#include "engine/cpu/call_list.h"

#include <algorithm>
#include <cstdint>

#include "base/assert.h"
#include "base/error.h"
#include "graph/op.h"

namespace trireme::cpu {
namespace {

// `activations` may be null where only sizes matter: a place is then a number that tells it apart.
Value Resolve(const Operand& operand, std::byte* activations) {
  const auto place = reinterpret_cast<uintptr_t>(activations) + operand.offset;
  return {operand.is_input ? nullptr : reinterpret_cast<std::byte*>(place), operand.spec.shape,
          operand.spec.element};
}

Call Resolve(const Instruction& instruction, const Layout& layout, const MatrixUnit* unit,
             std::byte* activations) {
  Call call;
  call.unit = unit;
  call.attributes = instruction.attributes;
  call.loss = layout.loss();
  call.correct = layout.correct();
  TRIREME_ASSERT(instruction.inputs.size() <= call.inputs.size());
  TRIREME_ASSERT(instruction.outputs.size() <= call.outputs.size());
  TRIREME_ASSERT(instruction.parameters.size() <= call.parameters.size());
  TRIREME_ASSERT(instruction.statistics.size() <= call.statistics.size());
  const auto resolve = [&](const Operand& operand) { return Resolve(operand, activations); };
  std::ranges::transform(instruction.inputs, call.inputs.begin(), resolve);
  std::ranges::transform(instruction.outputs, call.outputs.begin(), resolve);
  std::ranges::copy(instruction.parameters, call.parameters.begin());
  std::ranges::copy(instruction.statistics, call.statistics.begin());
  return call;
}

const KernelRow& KernelFor(const Instruction& instruction, const KernelTable& kernels) {
  const KernelRow* row = kernels.Find(instruction.op->name);
  if (!row) {
    throw Error("engine cpu: no kernel for operation {} (layer {})", instruction.op->name,
                instruction.name);
  }
  return *row;
}

}  // namespace

size_t CallList::ScratchFloats(const Program& program, const KernelTable& kernels, int threads) {
  size_t scratch = 0;
  for (const Instruction& instruction : program.instructions) {
    const KernelRow& row = KernelFor(instruction, kernels);
    if (!row.scratch) continue;
    const Call call = Resolve(instruction, program.layout, kernels.unit, nullptr);
    scratch = std::max(scratch, row.scratch(call, program.capacity, threads));
  }
  return scratch;
}

CallList::CallList(const Program& program, const KernelTable& kernels, Team& team,
                   std::byte* activations, float* scratch)
    : program_(program), team_(team), activations_(activations), scratch_(scratch) {
  for (const Instruction& instruction : program.instructions) {
    for (size_t i = 0; i < instruction.inputs.size(); ++i) {
      if (instruction.inputs[i].is_input) batch_inputs_.push_back({size(), static_cast<int>(i)});
    }
    calls_.push_back({KernelFor(instruction, kernels).run,
                      Resolve(instruction, program.layout, kernels.unit, activations)});
  }
}

void CallList::Run(const Batch& batch, const float* state, float* summand, bool accumulate,
                   int first, int last, Unwritten* unwritten) {
  TRIREME_ASSERT(batch.count >= 0 && batch.count <= program_.capacity);
  TRIREME_ASSERT(!unwritten || !accumulate);
  const Shard shard = {
      &batch,   static_cast<size_t>(batch.count), state, summand, accumulate, scratch_, &team_,
      unwritten};
  if (batch.count > 0) {
    // Kernels only read their inputs.
    float* samples = const_cast<float*>(batch.inputs.data());
    for (const BatchInput& b : batch_inputs_) calls_[b.step].call.inputs[b.input].data = samples;
    for (int i = first; i < last; ++i) calls_[i].run(calls_[i].call, shard);
  } else if (summand && first == 0 && !accumulate) {
    std::fill_n(summand, program_.layout.summand, 0.0f);
  }
  if (summand && last == size()) {
    float& votes = summand[program_.layout.votes()];
    votes = accumulate ? votes + batch.vote : batch.vote;
  }
}

const float* CallList::Find(const Operand& operand, const Batch& batch) const {
  TRIREME_ASSERT(operand.spec.element == Element::kFloat);
  return operand.is_input ? batch.inputs.data() : Resolve(operand, activations_).floats();
}

}  // namespace trireme::cpu
