#pragma once
#include <memory>
#include <string>

#include "engine/cuda/context.h"

namespace trireme::cuda {

// For tests: how many graphs an executable of this engine replays, and why it could not capture
// work, if so.
struct Captured {
  int graphs;
  std::string refusal;
};
Captured CapturedBy(const Executable& executable);

std::unique_ptr<Executable> MakeExecutable(std::shared_ptr<const Program> program,
                                           const Settings& settings, CudaQueue& queue);

}  // namespace trireme::cuda
