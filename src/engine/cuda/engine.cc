#include "engine/cuda/engine.h"

#include <fmt/format.h>

#include "base/assert.h"
#include "engine/cuda/cells.h"
#include "engine/cuda/chosen.h"
#include "engine/cuda/context.h"
#include "engine/cuda/executable.h"
#include "engine/cuda/gram_rules.h"
#include "engine/cuda/kernels.h"
#include "engine/cuda/lanes.h"
#include "engine/cuda/masks.h"
#include "engine/cuda/room.h"
#include "engine/cuda/target.h"
#include "graph/op.h"

namespace trireme::cuda {
namespace {

std::vector<Fusion> PlainFusions() {
  return {{&FindOp("dense_relu")},
          {&FindOp("dense_sigmoid")},
          {&FindOp("dense_tanh")},
          {&FindOp("conv2d_relu")},
          {&FindOp("batch_norm_add")},
          {&FindOp("batch_norm_add_relu")},
          {&FindOp("batch_norm_relu")},
          {&FindOp("add_relu_grad")},
          {&FindOp("add_relu_batch_norm_grad")},
          {&FindOp("batch_norm_relu_max_pool")},
          {&FindOp("max_pool_batch_norm_relu_grad")}};
}

class CudaEngine : public Engine {
 public:
  CudaEngine(CudaDevice& device, Precision precision, const EngineOptions& options)
      : device_(device),
        settings_{.libraries = OpenLibraries(), .precision = precision, .check = options.check} {
    target_ = TargetOf(device.properties(), *settings_.libraries);
    if (options.measure) {
      settings_.choices = std::make_shared<Choices>(ChoicesFile(target_), target_);
    }
    if (precision != Precision::kF32) target_ += fmt::format(", {}", NameOf(precision));
  }

  std::string_view name() const override { return "cuda"; }
  std::string_view target() const override { return target_; }
  Device& device() override { return device_; }
  bool Computes(std::string_view op) const override { return FindKernel(op) != nullptr; }
  std::span<const Fusion> fusions() const override { return FusionsIn(settings_.precision); }

  std::string Choose(Graph& graph) const override {
    std::string choices;
    const auto say = [&](const std::string& choice) {
      if (!choice.empty()) choices += (choices.empty() ? "" : "; ") + choice;
    };
    const Precision precision = settings_.precision;
    if (precision != Precision::kF32) say(fmt::format("precision: {} products", NameOf(precision)));
    say(KeepMoments(graph));
    say(MakeMasks(graph));
    say(KeepChosen(graph));
    if (precision != Precision::kF32) say(MakeCells(graph, OperandsIn(precision)));
    return choices;
  }

  Element narrow() const override { return OperandsIn(settings_.precision); }
  NarrowOperands NarrowOperandsOf(const Node& node) const override {
    return IsNarrow(narrow()) ? cuda::NarrowOperandsOf(node) : NarrowOperands();
  }

  int Lingers(const Graph& graph, const Node& node, int capacity) const override {
    return LingersAside(graph, node, capacity);
  }
  size_t alignment() const override { return 256; }
  int evaluation_samples() const override { return 256; }
  bool takes_bytes() const override { return true; }

  std::unique_ptr<Executable> Load(std::shared_ptr<const Program> program, Queue& queue) override {
    TRIREME_ASSERT(&queue.device() == &device_);
    return MakeExecutable(std::move(program), settings_, static_cast<CudaQueue&>(queue));
  }

  size_t ScratchBytes(const Program& program) const override {
    device_.Select();
    CudaQueue queue(device_);
    Context context(settings_, queue, 0);
    const Shares shares = SharesOf(program, context);
    return shares.total() - shares.activations;
  }

 private:
  CudaDevice& device_;
  Settings settings_;
  std::string target_;
};

}  // namespace

// With operands of 16 bits a pass over a value costs more than the products that do without it.
std::span<const Fusion> FusionsIn(Precision precision) {
  static const std::vector<Fusion> kPlain = PlainFusions();
  static const std::vector<Fusion> kNarrow = [] {
    std::vector<Fusion> all = GramFusions();
    all.insert(all.end(), kPlain.begin(), kPlain.end());
    return all;
  }();
  return IsNarrow(OperandsIn(precision)) ? kNarrow : kPlain;
}

std::unique_ptr<Engine> MakeEngine(CudaDevice& device, Precision precision,
                                   const EngineOptions& options) {
  return std::make_unique<CudaEngine>(device, precision, options);
}

}  // namespace trireme::cuda
