#pragma once
#include <utility>
#include <vector>

#include "flat/cpu/host.h"
#include "graph/engine.h"

namespace trireme {

// Plain loops in double precision: slow, and what the other engines are compared with.
class RefEngine : public Engine {
 public:
  // `fusions`: chains that it joins and then computes part by part, for tests.
  explicit RefEngine(std::vector<Fusion> fusions = {}) : fusions_(std::move(fusions)) {}

  std::string_view name() const override { return "ref"; }
  std::string_view target() const override { return "float64"; }
  Device& device() override { return device_; }
  bool Computes(std::string_view op) const override;
  std::span<const Fusion> fusions() const override { return fusions_; }
  std::unique_ptr<Executable> Load(std::shared_ptr<const Program> program, Queue& queue) override;

 private:
  HostDevice device_;
  const std::vector<Fusion> fusions_;
};

}  // namespace trireme
