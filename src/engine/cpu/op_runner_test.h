#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/team.h"
#include "engine/check/op_check.h"
#include "engine/cpu/bf16/units_here.h"
#include "engine/cpu/call_list.h"
#include "engine/cpu/targets.h"
#include "hwy/aligned_allocator.h"

// For tests: single operations on one instruction set of this machine.

namespace trireme::cpu {

class CpuRunner : public check::OpRunner {
 public:
  CpuRunner(int64_t target, int threads, const MatrixUnit* unit = nullptr) : team_(threads) {
    OnlyTarget only(target);
    kernels_ = ChooseKernels();
    kernels_.unit = unit;
  }

  void Run(std::shared_ptr<const Program> program, const Batch& batch,
           std::span<std::byte> activations, std::span<const float> state, std::span<float> summand,
           bool accumulate) override {
    const size_t floats = CallList::ScratchFloats(*program, kernels_, team_.size());
    const auto scratch = hwy::AllocateAligned<float>(floats + 16);
    // What a kernel does not write it must not read.
    std::fill_n(scratch.get(), floats, std::numeric_limits<float>::quiet_NaN());
    CallList calls(*program, kernels_, team_, activations.data(), scratch.get());
    calls.Run(batch, state.data(), summand.data(), accumulate, 0, calls.size());
  }

  const KernelTable& kernels() const { return kernels_; }
  std::string text() const {  // for messages
    return std::string(kernels_.target) + (kernels_.unit ? ", " : "") +
           std::string(kernels_.unit ? kernels_.unit->name : "");
  }

 private:
  Team team_;
  KernelTable kernels_;
};

using CpuRunners = std::vector<std::unique_ptr<CpuRunner>>;

inline CpuRunners RunnersOnAllTargets(int threads) {
  CpuRunners runners;
  for (const int64_t target : AllTargets()) {
    runners.push_back(std::make_unique<CpuRunner>(target, threads));
  }
  return runners;
}

inline CpuRunners RunnersWithUnits(int threads) {
  CpuRunners runners;
  for (const MatrixUnit* unit : UnitsHere()) {
    runners.push_back(std::make_unique<CpuRunner>(AllTargets().front(), threads, unit));
  }
  return runners;
}

}  // namespace trireme::cpu
