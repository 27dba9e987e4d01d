#include "engine/cpu/engine.h"

#include <fmt/core.h>
#include <hwy/highway.h>

#include <algorithm>
#include <map>

#include "base/assert.h"
#include "engine/cpu/call_list.h"
#include "engine/cpu/choose.h"
#include "graph/op.h"

namespace trireme {
namespace {

class CpuExecutable : public Executable {
 public:
  CpuExecutable(std::shared_ptr<const Program> program, const cpu::KernelTable& kernels,
                Device& device, int threads, Queue& queue)
      : Executable(std::move(program)),
        queue_(queue),
        team_(threads),
        activations_(device, program_->activation_bytes / sizeof(float) + 1),
        scratch_(device, cpu::CallList::ScratchFloats(*program_, kernels, threads)),
        calls_(*program_, kernels, team_, reinterpret_cast<std::byte*>(activations_.slice().data),
               scratch_.slice().data),
        unwritten_(*program_, device) {
    FindEnds();
  }

  Event RunShard(const Batch& batch, Slice state, Slice summand, bool accumulate,
                 Ready ready) override {
    const Layout& layout = program_->layout;
    TRIREME_ASSERT(state.size == layout.state && summand.size == layout.summand);
    cpu::Unwritten* const unwritten = batch.unwritten ? &unwritten_ : nullptr;
    if (unwritten) unwritten->Clear();
    ShardMarks* const marks = batch.marks;
    if (marks) marks->began = queue_.Mark();
    RunForward(batch, state, summand, accumulate);
    if (marks) marks->border = queue_.Mark();
    int at = num_forward_;
    for (const int end : ends_) {
      calls_.Run(batch, state.data, summand.data, accumulate, at, end, unwritten);
      at = end;
      Announce(program_->instructions[end - 1], queue_, ready);
    }
    if (marks) marks->ended = queue_.Mark();
    if (unwritten) *batch.unwritten = unwritten->outers();
    if (ready) ready(program_->buckets.back(), queue_.Record());  // the tail
    return queue_.Record();
  }

  void Evaluate(const Batch& batch, Slice state, const Results& results) override {
    calls_.Run(batch, state.data, nullptr, false, 0, calls_.size());
    const auto copy = [&](const Operand& from, std::span<float> to) {
      if (to.empty()) return;
      const size_t floats = static_cast<size_t>(batch.count * from.spec.shape.size());
      TRIREME_ASSERT(to.size() == floats);
      std::copy_n(calls_.Find(from, batch), floats, to.data());
    };
    copy(program_->logits, results.logits);
    copy(program_->probabilities, results.probabilities);
    copy(program_->losses, results.losses);
  }

  bool RunInstruction(const Batch& batch, Slice state, Slice summand, int index) override {
    calls_.Run(batch, state.data, summand.data, false, index, index + 1);
    return true;
  }

 private:
  void RunForward(const Batch& batch, Slice state, Slice summand, bool accumulate) {
    const auto run = [&](int first, int last) {
      calls_.Run(batch, state.data, summand.data, accumulate, first, last);
    };
    ShardMarks* const marks = batch.marks;
    if (marks) marks->waits.clear();
    if (!batch.await_bucket || batch.count == 0) return run(0, num_forward_);
    int at = 0;
    for (const int reader : readers_) {
      run(at, reader);
      at = reader;
      if (marks) marks->waits.push_back({queue_.Mark(), {}});
      for (const int bucket : program_->instructions[reader].first_reads) {
        queue_.Wait(batch.await_bucket(program_->buckets[bucket]));
      }
      if (marks) marks->waits.back().ended = queue_.Mark();
    }
    run(at, num_forward_);
  }

  void FindEnds() {
    const auto& instructions = program_->instructions;
    const auto backward = std::ranges::find_if(instructions, &Instruction::backward);
    num_forward_ = static_cast<int>(backward - instructions.begin());
    for (int i = 0; i < num_forward_; ++i) {
      if (!instructions[i].first_reads.empty()) readers_.push_back(i);
    }
    for (int i = num_forward_; i < calls_.size(); ++i) {
      if (!instructions[i].finishes.empty()) ends_.push_back(i + 1);
    }
    if (ends_.empty() || ends_.back() < calls_.size()) ends_.push_back(calls_.size());
  }

  Queue& queue_;
  Team team_;
  Buffer activations_, scratch_;
  cpu::CallList calls_;
  cpu::Unwritten unwritten_;
  int num_forward_ = 0;
  std::vector<int> readers_;  // instructions with first_reads
  std::vector<int> ends_;     // of the stretches of backward that finish buckets, and of all
};

}  // namespace

CpuEngine::CpuEngine(Device& device, int threads, std::string winograd, const cpu::MatrixUnit* unit)
    : device_(device),
      threads_(threads),
      winograd_(std::move(winograd)),
      kernels_(cpu::ChooseKernels()),
      target_(kernels_.target) {
  kernels_.unit = unit;
  if (unit) target_ += fmt::format("+{}", unit->name);
  TRIREME_ASSERT(device.host_visible());
}

std::span<const Fusion> CpuEngine::fusions() const {
  static const Fusion kFusions[] = {
      {&FindOp("dense_relu")},
      {&FindOp("dense_sigmoid")},
      {&FindOp("dense_tanh")},
      {&FindOp("conv2d_relu")},
      {&FindOp("batch_norm_add")},
      {&FindOp("batch_norm_add_relu")},
      {&FindOp("batch_norm_relu")},
      {&FindOp("add_relu_grad")},
      {&FindOp("dense_grad_input_relu_grad")},
  };
  return kFusions;
}

std::string CpuEngine::Choose(Graph& graph) const {
  std::map<int, int> counts;
  for (Node& node : graph.nodes) {
    const std::string_view op = node.op->name;
    if (!op.starts_with("conv2d")) continue;
    const Shape& from = graph.values[node.inputs[0]].shape;
    const bool dgrad = op == "conv2d_grad_input", wgrad = op == "conv2d_grad_weights";
    const Shape& to = graph.values[wgrad ? node.inputs[1] : node.outputs[0]].shape;
    Attributes& a = node.attributes;
    a.choice = cpu::ChooseWinograd(
        winograd_, dgrad ? cpu::ConvShapeOf(a, to, from) : cpu::ConvShapeOf(a, from, to),
        kernels_.unit != nullptr);
    if (a.choice) node.how = fmt::format("winograd f{}", a.choice);
    ++counts[a.choice];
  }
  std::string text;
  if (kernels_.unit) {
    text = fmt::format("precision: bf16 products with {}", kernels_.unit->name);
  }
  if (counts.empty()) return text;
  if (!text.empty()) text += "; ";
  return text + fmt::format("winograd ({}): {} convolutions with 4x4 tiles, {} with 2x2, {} direct",
                            winograd_, counts[4], counts[2], counts[0]);
}

NarrowOperands CpuEngine::NarrowOperandsOf(const Node& node) const {
  const cpu::KernelRow* row = kernels_.Find(node.op->name);
  if (!kernels_.unit || !row || node.attributes.choice) return {};  // Winograd: float32
  // Rows without tokens are small: little is saved, and thin products of float32 are exact.
  if (std::string_view(node.op->name).starts_with("dense") && !node.attributes.tokens) return {};
  return row->narrow;
}

std::unique_ptr<Executable> CpuEngine::Load(std::shared_ptr<const Program> program, Queue& queue) {
  return std::make_unique<CpuExecutable>(std::move(program), kernels_, device_, threads_, queue);
}

size_t CpuEngine::ScratchBytes(const Program& program) const {
  return cpu::CallList::ScratchFloats(program, kernels_, threads_) * sizeof(float);
}

std::vector<std::string> cpu::Targets() {
  std::vector<std::string> names;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    names.emplace_back(hwy::TargetName(target));
  }
  return names;
}

std::vector<std::string> cpu::BuiltTargets() {
  std::vector<std::string> names;
  for (int64_t rest = HWY_TARGETS; rest != 0; rest &= rest - 1) {  // the lowest bit is the best
    names.emplace_back(hwy::TargetName(rest & -rest));
  }
  for (const MatrixUnit* unit : AllMatrixUnits()) names.emplace_back(unit->name);
  return names;
}

}  // namespace trireme
