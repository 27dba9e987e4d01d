#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/team.h"
#include "engine/check/op_check.h"
#include "engine/cpu/bf16/units_here.h"
#include "engine/cpu/call_list.h"
#include "engine/cpu/guarded_scratch_test.h"
#include "engine/cpu/targets.h"
#include "graph/op.h"

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
    const GuardedScratch scratch(ScratchFloats(*program));
    CallList calls(*program, kernels_, team_, activations.data(), scratch.data());
    calls.Run(batch, state.data(), summand.data(), accumulate, 0, calls.size());
    EXPECT_TRUE(scratch.IsWhole()) << program->instructions[0].op->name << " on " << text();
  }

  // That a program of one operation takes.
  size_t ScratchFloats(const Program& program) const {
    return CallList::ScratchFloats(program, kernels_, team_.size());
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

inline CpuRunners RunnersWith(const std::vector<const MatrixUnit*>& units, int threads) {
  CpuRunners runners;
  for (const MatrixUnit* unit : units) {
    runners.push_back(std::make_unique<CpuRunner>(AllTargets().front(), threads, unit));
  }
  return runners;
}

}  // namespace trireme::cpu
