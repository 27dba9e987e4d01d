#include "engine/cuda/engine.h"

#include <fmt/format.h>

#include "base/assert.h"
#include "engine/cuda/call_list.h"
#include "engine/cuda/executable.h"
#include "engine/cuda/kernels.h"
#include "engine/cuda/target.h"

namespace trireme::cuda {
namespace {

constexpr Fusion kFusions[] = {
    {"dense", "relu", "dense_relu"},           {"dense", "sigmoid", "dense_sigmoid"},
    {"dense", "tanh", "dense_tanh"},           {"conv2d", "relu", "conv2d_relu"},
    {"batch_norm", "add", "batch_norm_add"},   {"batch_norm_add", "relu", "batch_norm_add_relu"},
    {"batch_norm", "relu", "batch_norm_relu"}, {"add", "relu_grad", "add_relu_grad"},
};

class CudaEngine : public Engine {
 public:
  CudaEngine(CudaDevice& device, Precision precision, const EngineOptions& options)
      : device_(device), settings_{OpenLibraries(), precision, options.check} {
    target_ = TargetOf(device.properties(), *settings_.libraries);
    if (precision != Precision::kF32) target_ += fmt::format(", {}", NameOf(precision));
  }

  std::string_view name() const override { return "cuda"; }
  std::string_view target() const override { return target_; }
  Device& device() override { return device_; }
  bool Computes(std::string_view op) const override { return FindKernel(op) != nullptr; }
  std::span<const Fusion> fusions() const override { return kFusions; }

  std::string Choose(Graph&) const override {
    if (settings_.precision == Precision::kF32) return "";
    return fmt::format("precision: {} products", NameOf(settings_.precision));
  }

  std::unique_ptr<Executable> Load(std::shared_ptr<const Program> program, Queue& queue) override {
    TRIREME_ASSERT(&queue.device() == &device_);
    return MakeExecutable(std::move(program), settings_, static_cast<CudaQueue&>(queue));
  }

  size_t ScratchBytes(const Program& program) const override {
    device_.Select();
    CudaQueue queue(device_);
    Context context(settings_.libraries, settings_.precision, queue, 0);
    const Needs needs = NeedsOf(program, context);
    const size_t sample = size_t(program.graph.input().size()) * sizeof(float) + sizeof(int32_t);
    return needs.scratch_bytes + needs.copies * sizeof(float) + size_t(program.capacity) * sample;
  }

 private:
  CudaDevice& device_;
  const Settings settings_;
  std::string target_;
};

}  // namespace

std::unique_ptr<Engine> MakeEngine(CudaDevice& device, Precision precision,
                                   const EngineOptions& options) {
  TRIREME_ASSERT(precision != Precision::kBf16);  // the row refuses it
  return std::make_unique<CudaEngine>(device, precision, options);
}

}  // namespace trireme::cuda
