#include "engine/cuda/lanes.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace trireme::cuda {
namespace {

// Of a product of gradients, multiplications: measured on an H200, larger ones fill the card, and
// beside other work both take longer than one after the other.
constexpr double kMostProducts = 2e9;
constexpr int kLingers = 8;  // nodes: about two layers

// Of an operation without outputs: `weights` numbers whose gradient it makes, of `gradient`.
bool LeavesRoom(int64_t weights, const Shape& gradient, int capacity) {
  const double rows = double(capacity) * gradient.height * gradient.width;
  return double(weights) * rows <= kMostProducts;
}

// The first input is what the weights were multiplied with.
template <class T>
const T& GradientAmong(const std::vector<T>& inputs) {
  return inputs[inputs.size() > 1 ? 1 : 0];
}

bool GoesAside(const Instruction& i, int capacity) {
  if (!i.outputs.empty()) return false;
  const size_t weights = i.parameters.empty() ? 0 : i.parameters[0].size;
  return LeavesRoom(int64_t(weights), GradientAmong(i.inputs).spec.shape, capacity);
}

// Bytes that an instruction reads or writes: of the activations, or of a summand.
struct Touch {
  bool summand, writes;
  size_t begin, end;
  bool Conflicts(const Touch& other) const {
    return summand == other.summand && (writes || other.writes) && begin < other.end &&
           other.begin < end;
  }
};

std::vector<Touch> TouchesOf(const Instruction& instruction, int capacity) {
  std::vector<Touch> touches;
  const auto add = [&](const Operand& operand, bool writes) {
    if (operand.is_input) return;  // samples: only read
    touches.push_back(
        {false, writes, operand.offset, operand.offset + size_t(operand.spec.bytes(capacity))});
  };
  for (const Operand& input : instruction.inputs) add(input, false);
  for (const Operand& output : instruction.outputs) add(output, true);
  std::vector<Range> written = WrittenGradients(instruction);
  std::ranges::copy(instruction.statistics, std::back_inserter(written));
  for (const Range& range : written) {
    touches.push_back({true, true, range.begin, range.begin + range.size});
  }
  return touches;
}

bool AnyConflict(const std::vector<Touch>& one, const std::vector<Touch>& other) {
  return std::ranges::any_of(one, [&](const Touch& a) {
    return std::ranges::any_of(other, [&](const Touch& b) { return a.Conflicts(b); });
  });
}

}  // namespace

std::vector<Lane> PlanLanes(const Program& program) {
  const int size = int(program.instructions.size());
  std::vector<Lane> lanes(static_cast<size_t>(size));
  std::vector<std::vector<Touch>> touches;
  for (const Instruction& instruction : program.instructions) {
    touches.push_back(TouchesOf(instruction, program.capacity));
  }
  std::array<int, 2> known = {-1, -1};  // what each stream has waited for of the other
  for (int i = 0; i < size; ++i) {
    Lane& lane = lanes[size_t(i)];
    lane.aside = GoesAside(program.instructions[size_t(i)], program.capacity);
    int& waited = known[lane.aside];
    for (int k = i - 1; k > waited; --k) {
      if (lanes[size_t(k)].aside == lane.aside) continue;
      if (!AnyConflict(touches[size_t(i)], touches[size_t(k)])) continue;
      lane.after = waited = k;
      lanes[size_t(k)].awaited = true;
    }
  }
  return lanes;
}

int LingersAside(const Graph& graph, const Node& node, int capacity) {
  if (!node.outputs.empty()) return 0;
  const auto& own = node.parameters;
  const int64_t weights = own.empty() ? 0 : graph.parameters[size_t(own[0])].size();
  const Shape& gradient = graph.values[size_t(GradientAmong(node.inputs))].shape;
  return LeavesRoom(weights, gradient, capacity) ? kLingers : 0;
}

}  // namespace trireme::cuda
