#pragma once
#include <atomic>
#include <memory>

#include "engine/cpu/engine.h"
#include "flat/cpu/host.h"
#include "graph/engine.h"
#include "pretend/device.h"

namespace trireme {

// The kernels of engine/cpu on a pretended device: RunShard only enqueues, so every bucket is
// announced before any work has run, and the batch is read late. Where the loss is scaled, its
// gradients overflow as those of float16 do.
class PretendEngine : public Engine {
 public:
  // `announced`, if not null, counts the buckets that it says are ready.
  PretendEngine(PretendDevice& device, int threads, std::atomic<int>* announced = nullptr);

  std::string_view name() const override { return "pretend"; }
  std::string_view target() const override { return cpu_.target(); }
  Device& device() override { return device_; }
  bool Computes(std::string_view op) const override { return cpu_.Computes(op); }
  std::span<const Fusion> fusions() const override { return cpu_.fusions(); }
  std::string Choose(Graph& graph) const override { return cpu_.Choose(graph); }
  int evaluation_samples() const override { return 250; }
  bool takes_bytes() const override { return true; }
  NarrowOperands NarrowOperandsOf(const Node& node) const override {
    return cpu_.NarrowOperandsOf(node);
  }
  std::unique_ptr<Executable> Load(std::shared_ptr<const Program> program, Queue& queue) override;

 private:
  PretendDevice& device_;
  const int threads_;
  HostDevice host_;
  CpuEngine cpu_;  // lends its kernels and its list of fusions
  std::atomic<int>* const announced_;
};

}  // namespace trireme
