#pragma once
#include <memory>

#include "engine/cuda/device.h"
#include "graph/engine.h"
#include "graph/engine_options.h"

namespace trireme::cuda {

// Computes on a card, which outlives it. Throws Error where a library is missing.
std::unique_ptr<Engine> MakeEngine(CudaDevice& device, Precision precision,
                                   const EngineOptions& options);

}  // namespace trireme::cuda
