#include "engine/ref/runner.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/assert.h"
#include "base/clock.h"
#include "base/half.h"
#include "graph/op.h"

namespace trireme::ref {

namespace {

double RoundToBf16(double x) {
  uint32_t bits = std::bit_cast<uint32_t>(float(x));
  bits += 0x7fff + (bits >> 16 & 1);  // to the nearest, to the even one of two
  return std::bit_cast<float>(bits & 0xffff0000);
}

}  // namespace

Runner::Runner(const Program& program, Narrow narrow)
    : program_(program),
      narrow_(narrow),
      stored_(program.graph.values.size()),
      values_(stored_.size()) {
  std::iota(stored_.begin(), stored_.end(), 0);
  FindViews(program.graph.nodes);
}

void Runner::FindViews(std::span<const Node> nodes) {
  for (const Node& node : nodes) {
    if (node.op->view) stored_[node.outputs[0]] = stored_[node.inputs[0]];
    if (node.op->parts.size() > 0) FindViews(node.parts);
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
    if (narrow_ == Narrow::kRounded) {
      for (const Operand& output : instruction.outputs) Round(output);
    }
    (instruction.backward ? backward_s_ : forward_s_) += watch.seconds();
  }
}

Tensor Runner::Open(const Operand& operand, int64_t samples) {
  const int64_t size = operand.spec.shape.size() * (operand.spec.per_sample ? samples : 1);
  std::vector<double>& numbers = values_[stored_[operand.value]];
  TRIREME_ASSERT(int64_t(numbers.size()) == size);  // made before it is read, or set
  return {operand.spec, numbers};
}

void Runner::Round(const Operand& operand) {
  if (!IsNarrow(operand.spec.element)) return;
  const bool half = operand.spec.element == Element::kHalf;
  for (double& x : values_[stored_[operand.value]]) x = half ? RoundToHalf(x) : RoundToBf16(x);
}

Call Runner::MakeCall(const Instruction& instruction, const Slices& s) {
  Call call{.attributes = instruction.attributes, .batch = s.batch};
  const auto in_summand = [&](const Range& range) {  // of what is frozen nothing
    return program_.layout.IsFrozen(range) ? std::span<double>()
                                           : s.summand.subspan(range.begin, range.size);
  };
  for (const Range& range : instruction.parameters) {
    call.weights.push_back(s.state.subspan(range.begin, range.size));
    call.gradients.push_back(in_summand(range));
  }
  for (const Range& range : instruction.statistics) {
    call.running.push_back(s.state.subspan(range.begin, range.size));
    call.seen.push_back(in_summand(range));
  }
  call.metrics = s.summand.last(Layout::kStepMetrics);
  return call;
}

void Runner::Execute(const Instruction& instruction, const Slices& slices) {
  const OpDef& op = *instruction.op;
  if (op.parts.size() > 0) {
    TRIREME_ASSERT(instruction.parts.size() == op.parts.size());
    for (size_t i = 0; i < instruction.parts.size(); ++i) {
      Execute(instruction.parts[i], slices);
      if (int(i) == op.keeps) Round(instruction.parts[i].outputs[0]);
    }
    return;
  }
  if (op.view) return;  // a part
  const int64_t samples = slices.batch.count;
  for (const Operand& output : instruction.outputs) {
    const int64_t size = output.spec.shape.size() * (output.spec.per_sample ? samples : 1);
    values_[stored_[output.value]].assign(size, 0.0);
  }
  const Kernel kernel = FindKernel(op.name);
  TRIREME_ASSERT(kernel);  // compiled for this engine
  Call call = MakeCall(instruction, slices);
  for (const Operand& input : instruction.inputs) call.inputs.push_back(Open(input, samples));
  for (const Operand& output : instruction.outputs) call.outputs.push_back(Open(output, samples));
  kernel(call);
}

}  // namespace trireme::ref
