#include "engine/cpu/unwritten.h"

#include <algorithm>
#include <string_view>

#include "graph/op.h"

namespace trireme::cpu {
namespace {

// Vectors begin at cache lines.
size_t Room(size_t values, size_t wrap) {
  return (values + wrap + Layout::kAlignment - 1) / Layout::kAlignment * Layout::kAlignment;
}

}  // namespace

Unwritten::Unwritten(const Program& program, Device& device) {
  size_t floats = 0, count = 0;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.op->name != std::string_view("dense_grad_weights")) continue;
    const size_t in = size_t(instruction.inputs[0].spec.shape.size());
    const size_t out = size_t(instruction.inputs[1].spec.shape.size());
    if (!IsWorthIt(in, out)) continue;
    floats += Room(in, 0) + Room(out, OuterProduct::kWrap);
    ++count;
  }
  outers_.reserve(count);
  memory_ = Buffer(device, floats);
}

const float* Unwritten::Copy(std::span<const float> from, size_t wrap) {
  float* to = memory_.slice().Sub(used_, Room(from.size(), wrap)).data;
  used_ += Room(from.size(), wrap);
  std::copy_n(from.begin(), wrap, std::copy(from.begin(), from.end(), to));
  return to;
}

}  // namespace trireme::cpu
