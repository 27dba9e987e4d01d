#pragma once
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/engine.h"

namespace trireme {

// For tests: computes nothing; says that it could.
class PaperEngine : public Engine {
 public:
  explicit PaperEngine(std::vector<Fusion> fusions = {}, std::string lacks = {},
                       size_t alignment = 64)
      : fusions_(std::move(fusions)), lacks_(std::move(lacks)), alignment_(alignment) {}
  std::string_view name() const override { return "paper"; }
  std::string_view target() const override { return "paper"; }
  Device& device() override { std::abort(); }
  bool Computes(std::string_view op) const override { return op != lacks_; }
  std::span<const Fusion> fusions() const override { return fusions_; }
  size_t alignment() const override { return alignment_; }
  std::unique_ptr<Executable> Load(std::shared_ptr<const Program>, Queue&) override { return {}; }

 private:
  const std::vector<Fusion> fusions_;
  const std::string lacks_;
  const size_t alignment_;
};

}  // namespace trireme
