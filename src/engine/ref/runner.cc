#include "engine/ref/runner.h"

#include <algorithm>
#include <numeric>

#include "base/assert.h"
#include "base/clock.h"
#include "graph/op.h"

namespace trireme::ref {

Runner::Runner(const Program& program)
    : program_(program), stored_(program.graph.values.size()), values_(stored_.size()) {
  std::iota(stored_.begin(), stored_.end(), 0);
  for (const Node& node : program.graph.nodes) {
    if (node.op->view) stored_[node.outputs[0]] = stored_[node.inputs[0]];
  }
}

void Runner::Set(ValueId value, std::vector<double> numbers) {
  values_[stored_[value]] = std::move(numbers);
}

void Runner::Run(const Batch& batch, std::span<const double> state, std::span<double> summand,
                 bool accumulate) {
  TRIREME_ASSERT(state.size() == program_.layout.state);
  TRIREME_ASSERT(summand.size() == program_.layout.summand);
  if (!accumulate) std::ranges::fill(summand, 0.0);
  if (!batch.inputs.empty() || batch.count == 0) {
    values_[0].assign(batch.inputs.begin(), batch.inputs.end());
  }
  forward_s_ = backward_s_ = 0;
  for (const Instruction& instruction : program_.instructions) {
    const Stopwatch watch;
    Execute(instruction, {batch, state, summand});
    (instruction.backward ? backward_s_ : forward_s_) += watch.seconds();
  }
}

Tensor Runner::Open(const Operand& operand, int64_t samples) {
  const int64_t size = operand.spec.shape.size() * (operand.spec.per_sample ? samples : 1);
  std::vector<double>& numbers = values_[stored_[operand.value]];
  TRIREME_ASSERT(int64_t(numbers.size()) == size);  // made before it is read, or set
  return {operand.spec, numbers};
}

Call Runner::MakeCall(const Instruction& instruction, const Slices& s) {
  Call call{.attributes = instruction.attributes, .batch = s.batch};
  for (const Range& range : instruction.parameters) {
    call.weights.push_back(s.state.subspan(range.begin, range.size));
    call.gradients.push_back(s.summand.subspan(range.begin, range.size));
  }
  for (const Range& range : instruction.statistics) {
    call.running.push_back(s.state.subspan(range.begin, range.size));
    call.seen.push_back(s.summand.subspan(range.begin, range.size));
  }
  call.metrics = s.summand.last(Layout::kStepMetrics);
  return call;
}

void Runner::Execute(const Instruction& instruction, const Slices& slices) {
  const int64_t samples = slices.batch.count;
  for (const Operand& output : instruction.outputs) {
    const int64_t size = output.spec.shape.size() * (output.spec.per_sample ? samples : 1);
    values_[stored_[output.value]].assign(size, 0.0);
  }
  if (instruction.op->parts.size()) return Chain(instruction, slices);

  const Kernel kernel = FindKernel(instruction.op->name);
  TRIREME_ASSERT(kernel);  // compiled for this engine
  Call call = MakeCall(instruction, slices);
  for (const Operand& input : instruction.inputs) call.inputs.push_back(Open(input, samples));
  for (const Operand& output : instruction.outputs) call.outputs.push_back(Open(output, samples));
  kernel(call);
}

// A fused operation: the first part reads as many inputs as it has; each later one reads the result
// before it and the next inputs (a gradient's dy comes last). All results but the last are put
// aside; what the first makes beside its result are the instruction's further outputs.
void Runner::Chain(const Instruction& instruction, const Slices& slices) {
  const int64_t samples = slices.batch.count;
  const Tensor result = Open(instruction.outputs[0], samples);
  std::vector<double> before(result.values.size());
  size_t next_input = 0, index = 0;
  for (const char* name : instruction.op->parts) {
    const OpDef& part = FindOp(name);
    Call call = MakeCall(instruction, slices);
    if (index > 0) {
      before.assign(result.values.begin(), result.values.end());
      std::ranges::fill(result.values, 0.0);
    }
    const bool is_gradient = !part.infer;
    if (index > 0 && !is_gradient) call.inputs.push_back({result.spec, before});
    const size_t own = part.inputs.size() - (index > 0 && is_gradient ? 1 : 0);
    while (call.inputs.size() < own) {
      call.inputs.push_back(Open(instruction.inputs[next_input++], samples));
    }
    if (index > 0 && is_gradient) call.inputs.push_back({result.spec, before});
    call.outputs.push_back(result);
    for (size_t i = 1; index == 0 && i < part.outputs.size(); ++i) {
      call.outputs.push_back(Open(instruction.outputs[i], samples));
    }
    TRIREME_ASSERT(call.outputs.size() == part.outputs.size());
    FindKernel(name)(call);
    ++index;
  }
  TRIREME_ASSERT(next_input == instruction.inputs.size());
}

}  // namespace trireme::ref
