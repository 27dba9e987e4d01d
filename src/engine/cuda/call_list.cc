#include "engine/cuda/call_list.h"

#include <algorithm>
#include <map>

#include "base/assert.h"
#include "base/error.h"
#include "engine/cuda/check.h"
#include "engine/cuda/losses.h"
#include "graph/op.h"

namespace trireme::cuda {
namespace {

// Tiles of gradients that are worth a kernel, beside which backward goes on.
constexpr int kTurnedAtOnce = 1024;

const KernelRow& KernelFor(const Instruction& instruction) {
  const KernelRow* row = FindKernel(instruction.op->name);
  if (!row) {
    throw Error("engine cuda: no kernel for operation {} (layer {})", instruction.op->name,
                instruction.name);
  }
  return *row;
}

void* Address(const Operand& operand, const Memory& memory, int slot) {
  if (operand.is_input) return memory.slots[size_t(slot)].inputs;
  return memory.activations ? memory.activations + operand.offset : nullptr;
}

// `memory` may be empty where only sizes matter.
Call Resolve(const Instruction& instruction, const Layout& layout, const Memory& memory, int slot) {
  Call call;
  call.instruction = &instruction;
  call.metrics = layout.loss();
  TRIREME_ASSERT(instruction.inputs.size() <= call.inputs.size());
  TRIREME_ASSERT(instruction.outputs.size() <= call.outputs.size());
  const auto resolve = [&](const Operand& operand) {
    return Value{Address(operand, memory, slot), operand.spec.shape, operand.spec.element};
  };
  std::ranges::transform(instruction.inputs, call.inputs.begin(), resolve);
  std::ranges::transform(instruction.outputs, call.outputs.begin(), resolve);
  return call;
}

// Where the copy of each matrix, and of each gradient, begins, by where its weights lie in a state:
// in numbers.
struct CopyPlaces {
  CopyPlaces(const Program& program, Precision precision) {
    constexpr size_t kAlignment = 128;  // 256 bytes or more
    for (const Instruction& instruction : program.instructions) {
      const WeightCopy kind = WeightCopyOf(instruction, precision);
      if (kind == WeightCopy::kNone) continue;
      const Range& range = instruction.parameters[0];
      auto& places = kind == WeightCopy::kTurnedGradient ? gradients : weights;
      if (!places.try_emplace(range.begin, numbers).second) continue;
      numbers += (range.size + kAlignment - 1) / kAlignment * kAlignment;
    }
  }
  std::map<size_t, size_t> weights, gradients;
  size_t numbers = 0;  // of all
};

std::string Explain(const Instruction& instruction, int samples) {
  const auto join = [](const std::vector<Operand>& operands) {
    std::string sizes;
    for (const Operand& operand : operands) {
      sizes += (sizes.empty() ? "" : ", ") + ToText(operand.spec.shape);
    }
    return sizes;
  };
  return fmt::format("operation {} of layer {}, {} -> {}, {} samples", instruction.op->name,
                     instruction.name, join(instruction.inputs), join(instruction.outputs),
                     samples);
}

}  // namespace

Needs NeedsOf(const Program& program, Context& context, int samples) {
  Needs needs;
  const std::vector<Lane> lanes = PlanLanes(program);
  for (size_t i = 0; i < lanes.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    const KernelRow& row = KernelFor(instruction);
    if (!row.scratch) continue;
    try {
      const Call call = Resolve(instruction, program.layout, {}, 0);
      const size_t bytes = row.scratch(call, size_t(samples), context);
      size_t& most = lanes[i].aside ? needs.aside_scratch_bytes : needs.scratch_bytes;
      most = std::max(most, bytes);
    } catch (Error& error) {
      error.Add("{}", Explain(instruction, samples));
      throw;
    }
  }
  needs.copy_bytes =
      CopyPlaces(program, context.precision).numbers * size_t(BytesOf(context.element()));
  return needs;
}

size_t MostSums(const Program& program) {
  size_t most = 0;
  for (const Instruction& instruction : program.instructions) {
    for (const Range& statistic : instruction.statistics) {
      most = std::max(most, 2 * statistic.size + 1);
    }
  }
  return most;
}

CallList::CallList(const Program& program, Context& context, const Memory& memory, bool check,
                   CudaQueue* aside)
    : program_(program),
      context_(context),
      memory_(memory),
      check_(check),
      aside_(check ? nullptr : aside),
      lanes_(PlanLanes(program)) {
  for (const Instruction& instruction : program.instructions) {
    for (int slot = 0; slot < kSlots; ++slot) {
      calls_[size_t(slot)].push_back(
          {KernelFor(instruction).run, Resolve(instruction, program.layout, memory, slot)});
    }
  }
  PlanCopies();
}

void CallList::Copies::Add(int instruction, MatrixCopy copy) {
  copy.first_tile = tiles;
  tiles += copy.tiles();
  list.push_back(copy);
  instructions.push_back(instruction);
}

MatrixTiles CallList::Copies::Between(int first, int last) const {
  const auto from = std::ranges::lower_bound(instructions, first) - instructions.begin();
  const auto to = std::ranges::lower_bound(instructions, last) - instructions.begin();
  if (from == to) return {};
  const int begin = list[size_t(from)].first_tile;
  const int end = list[size_t(to - 1)].first_tile + list[size_t(to - 1)].tiles();
  return {static_cast<const MatrixCopy*>(list_on_card.data()),
          static_cast<const int*>(copy_of_tile_on_card.data()), begin, end - begin};
}

void CallList::PlanCopies() {
  const CopyPlaces places(program_, context_.precision);
  std::map<size_t, bool> planned;
  for (int i = 0; i < size(); ++i) {
    const Instruction& instruction = program_.instructions[size_t(i)];
    const WeightCopy kind = WeightCopyOf(instruction, context_.precision);
    if (kind == WeightCopy::kNone) continue;
    const bool is_gradient = kind == WeightCopy::kTurnedGradient;
    const Range& weights = instruction.parameters[0];
    const size_t place = (is_gradient ? places.gradients : places.weights).at(weights.begin);
    for (auto& calls : calls_) calls[size_t(i)].call.copy = place;
    if (is_gradient) {
      const int out = instruction.inputs[1].spec.shape.channels;
      gradients_.Add(i, {.from = place,
                         .to = weights.begin,
                         .rows = out,
                         .columns = int(weights.size) / out,
                         .turned = true});
    } else if (planned.try_emplace(weights.begin, true).second) {
      const Operand& result = instruction.backward ? instruction.inputs[0] : instruction.outputs[0];
      const int out = result.spec.shape.channels;
      weights_.Add(i, {.from = weights.begin,
                       .to = place,
                       .rows = int(weights.size) / out,
                       .columns = out,
                       .turned = kind == WeightCopy::kTurned});
    }
  }
  PutOnCard(weights_);
  PutOnCard(gradients_);
}

void CallList::PutOnCard(Copies& copies) {
  if (copies.list.empty()) return;
  std::vector<int> copy_of_tile;
  for (size_t i = 0; i < copies.list.size(); ++i) {
    copy_of_tile.insert(copy_of_tile.end(), size_t(copies.list[i].tiles()), int(i));
  }
  const auto to_card = [&](const auto& list) {
    const size_t bytes = list.size() * sizeof(list[0]);
    CardMemory memory(context_.queue.card(), bytes, "copies of weights and gradients");
    Check(cudaMemcpyAsync(memory.data(), list.data(), bytes, cudaMemcpyHostToDevice,
                          context_.stream()),
          "cudaMemcpyAsync");
    return memory;
  };
  copies.list_on_card = to_card(copies.list);
  copies.copy_of_tile_on_card = to_card(copy_of_tile);
  context_.queue.Sync();  // the list of tiles ends here
}

void CallList::WriteNumbers(const Batch& batch) {
  LaunchWriteNumbers(context_.stream(),
                     {.loss_scale = batch.loss_scale,
                      .statistics_scale = batch.statistics_scale,
                      .vote = batch.vote,
                      .random_key = batch.random_key,
                      .first_position = uint64_t(batch.first_position)},
                     batch.gradient_scale.data, memory_.numbers);
  CheckLaunch("numbers of a shard");
}

void CallList::CopyWeights(const float* state, int first, int last) {
  const MatrixTiles tiles = weights_.Between(first, last);
  if (tiles.count == 0) return;
  LaunchMatrixCopies(context_.stream(), tiles, state, {memory_.copies, context_.element()});
  CheckCopies("copies of weights");
}

void CallList::Run(const Batch& batch, const float* state, float* summand, bool accumulate,
                   int first, int last) {
  TRIREME_ASSERT(batch.count > 0 && batch.count <= program_.capacity);
  const SampleSlot& slot = memory_.slots[size_t(slot_)];
  Shard shard = {.batch = &batch,
                 .count = size_t(batch.count),
                 .numbers = memory_.numbers,
                 .labels = slot.labels,
                 .class_weights = batch.class_weights.empty() ? nullptr : slot.class_weights,
                 .mixes = batch.mixes.empty() ? nullptr : slot.mixes,
                 .state = state,
                 .copies = {memory_.copies, context_.element()},
                 .summand = summand,
                 .accumulate = accumulate,
                 .scratch = nullptr,
                 .scratch_bytes = 0};
  CudaQueue& queue = context_.queue;
  std::vector<Event> ended(static_cast<size_t>(last - first));  // those that are awaited
  bool forked = false;
  int turned = first;  // gradients of instructions from here on are not in the summand yet
  for (int i = first; i < last; ++i) {
    const Lane& lane = lanes_[size_t(i)];
    const bool aside = aside_ && lane.aside && last - first > 1;
    const Memory::Scratch& scratch = lane.aside ? memory_.aside_scratch : memory_.scratch;
    shard.scratch = scratch.data;
    shard.scratch_bytes = scratch.bytes;
    if (aside && !forked) {
      aside_->Wait(queue.Record());
      forked = true;
    } else if (forked && lane.after >= first) {
      (aside ? *aside_ : queue).Wait(ended[size_t(lane.after - first)]);
    }
    context_.GoAside(aside ? aside_ : nullptr);
    RunOne(i, shard);
    if (aside_ && lane.awaited) ended[size_t(i - first)] = (aside ? *aside_ : queue).Record();
    if (aside_ && i + 1 < last && gradients_.Between(turned, i + 1).count >= kTurnedAtOnce) {
      aside_->Wait(queue.Record());  // some may have been made there
      forked = true;
      TurnGradients(aside_->stream(), shard, turned, i + 1);
      turned = i + 1;
    }
  }
  context_.GoAside(nullptr);
  if (forked) queue.Wait(aside_->Record());
  TurnGradients(queue.stream(), shard, turned, last);
}

void CallList::TurnGradients(cudaStream_t stream, const Shard& shard, int first, int last) {
  const MatrixTiles tiles = gradients_.Between(first, last);
  if (tiles.count == 0) return;
  LaunchGradientCopies(stream, tiles, shard.copies, shard.summand, shard.accumulate);
  CheckCopies("gradients of weights, from the libraries' order to the summand's");
}

// Else a fault would be told by an operation after it, which is not to blame.
void CallList::CheckCopies(const char* what) {
  CheckLaunch(what);
  if (!check_) return;
  try {
    context_.queue.Sync();
  } catch (Error& error) {
    error.Add("{}", what);
    throw;
  }
}

void CallList::RunOne(int index, const Shard& shard) {
  const Step& step = calls_[size_t(slot_)][size_t(index)];
  try {
    step.run(step.call, shard, context_);
    CheckLaunch("a kernel's launch");
    if (check_) context_.queue.Sync();
  } catch (Error& error) {
    context_.GoAside(nullptr);
    error.Add("{}", Explain(*step.call.instruction, int(shard.count)));
    throw;
  }
}

void CallList::RunEmpty(float* summand, bool accumulate) {
  const Layout& layout = program_.layout;
  if (!accumulate) {
    Check(cudaMemsetAsync(summand, 0, layout.summand * sizeof(float), context_.stream()),
          "cudaMemsetAsync");
  }
  LaunchTally(context_.stream(), {.samples = 0, .classes = 0, .values = nullptr, .labels = nullptr},
              {.losses = nullptr,
               .numbers = memory_.numbers,
               .parts = nullptr,
               .counter = nullptr,
               .metrics = summand + layout.loss(),
               .accumulate = true});
  CheckLaunch("tally");
}

float* CallList::Find(const Operand& operand) const {
  TRIREME_ASSERT(operand.spec.element == Element::kFloat);
  return static_cast<float*>(Address(operand, memory_, slot_));
}

}  // namespace trireme::cuda
