#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/cpu/call.h"
#include "graph/engine.h"

namespace trireme {

// Computes on the processor's cores, with the best vector instructions that it has.
class CpuEngine : public Engine {
 public:
  // `device` is a host-visible one. The instruction set is chosen here, once. `winograd`: see
  // ChooseWinograd. `unit` computes products in bf16 (its life is the program's), and activations
  // are held in bf16; null: float32.
  CpuEngine(Device& device, int threads, std::string winograd = "auto",
            const cpu::MatrixUnit* unit = nullptr);

  std::string_view name() const override { return "cpu"; }
  std::string_view target() const override { return target_; }
  Device& device() override { return device_; }
  bool Computes(std::string_view op) const override { return kernels_.Find(op) != nullptr; }
  std::span<const Fusion> fusions() const override;
  std::string Choose(Graph& graph) const override;
  NarrowOperands NarrowOperandsOf(const Node& node) const override;
  // Each executable has its own threads: several may run at once.
  std::unique_ptr<Executable> Load(std::shared_ptr<const Program> program, Queue& queue) override;
  size_t ScratchBytes(const Program& program) const override;

  const cpu::KernelTable& kernels() const { return kernels_; }

 private:
  Device& device_;
  const int threads_;
  const std::string winograd_;
  cpu::KernelTable kernels_;
  std::string target_;
};

namespace cpu {

// The instruction sets that were built and that this machine has, best first: that one is chosen.
std::vector<std::string> Targets();
// All that there is code for, on whatever machine; units for bf16 behind them.
std::vector<std::string> BuiltTargets();

}  // namespace cpu
}  // namespace trireme
