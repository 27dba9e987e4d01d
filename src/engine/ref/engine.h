#pragma once
#include <utility>
#include <vector>

#include "flat/cpu/host.h"
#include "graph/engine.h"
#include "graph/engine_options.h"

namespace trireme {

// Plain loops in double precision: slow, and what the other engines are compared with. In fp16 all
// that lies between two layers, and only that, is rounded: what the type does to a training.
class RefEngine : public Engine {
 public:
  // `fusions`: chains that it joins and then computes part by part, for tests.
  explicit RefEngine(std::vector<Fusion> fusions = {}, Precision precision = Precision::kF32)
      : fusions_(std::move(fusions)), precision_(precision) {}

  std::string_view name() const override { return "ref"; }
  std::string_view target() const override { return halves() ? "float64, fp16" : "float64"; }
  Device& device() override { return device_; }
  bool Computes(std::string_view op) const override;
  std::span<const Fusion> fusions() const override { return fusions_; }
  Element narrow() const override { return Element::kHalf; }
  NarrowOperands NarrowOperandsOf(const Node& node) const override;
  std::unique_ptr<Executable> Load(std::shared_ptr<const Program> program, Queue& queue) override;

 private:
  bool halves() const { return precision_ == Precision::kFp16; }

  HostDevice device_;
  const std::vector<Fusion> fusions_;
  const Precision precision_;
};

}  // namespace trireme
