#include "engine/cuda/engine.h"

#include <fmt/format.h>

#include "base/assert.h"
#include "engine/cuda/cells.h"
#include "engine/cuda/context.h"
#include "engine/cuda/executable.h"
#include "engine/cuda/kernels.h"
#include "engine/cuda/masks.h"
#include "engine/cuda/room.h"
#include "engine/cuda/target.h"
#include "graph/op.h"

namespace trireme::cuda {
namespace {

std::span<const Fusion> Fusions() {
  static const Fusion kFusions[] = {
      {&FindOp("dense_relu")},
      {&FindOp("dense_sigmoid")},
      {&FindOp("dense_tanh")},
      {&FindOp("conv2d_relu")},
      {&FindOp("batch_norm_add")},
      {&FindOp("batch_norm_add_relu")},
      {&FindOp("batch_norm_relu")},
      {&FindOp("add_relu_grad")},
      {&FindOp("add_relu_batch_norm_grad")},
      {&FindOp("batch_norm_relu_max_pool")},
      {&FindOp("max_pool_batch_norm_relu_grad")},
  };
  return kFusions;
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
  std::span<const Fusion> fusions() const override { return Fusions(); }

  std::string Choose(Graph& graph) const override {
    const std::string masks = MakeMasks(graph);
    if (settings_.precision == Precision::kF32) return masks;
    std::string choices = fmt::format("precision: {} products", NameOf(settings_.precision));
    for (const std::string& choice : {masks, MakeCells(graph)}) {
      if (!choice.empty()) choices += "; " + choice;
    }
    return choices;
  }

  NarrowOperands NarrowOperandsOf(const Node& node) const override {
    return settings_.precision == Precision::kBf16 ? NarrowOperandsInBf16(node) : NarrowOperands();
  }

  size_t alignment() const override { return 256; }
  int evaluation_samples() const override { return 256; }

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

std::unique_ptr<Engine> MakeEngine(CudaDevice& device, Precision precision,
                                   const EngineOptions& options) {
  return std::make_unique<CudaEngine>(device, precision, options);
}

}  // namespace trireme::cuda
