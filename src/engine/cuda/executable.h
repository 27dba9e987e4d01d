#pragma once
#include <memory>

#include "engine/cuda/device.h"
#include "engine/cuda/libraries.h"
#include "graph/engine.h"
#include "graph/engine_options.h"

namespace trireme::cuda {

// How an engine computes.
struct Settings {
  std::shared_ptr<const Libraries> libraries;
  Precision precision = Precision::kF32;
  bool check = false;  // wait for each operation
};

std::unique_ptr<Executable> MakeExecutable(std::shared_ptr<const Program> program,
                                           const Settings& settings, CudaQueue& queue);

}  // namespace trireme::cuda
