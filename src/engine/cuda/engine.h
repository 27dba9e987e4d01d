#pragma once
#include <memory>
#include <span>

#include "engine/cuda/device.h"
#include "graph/engine.h"
#include "graph/engine_options.h"

namespace trireme::cuda {

// What is computed as one where products are so precise.
std::span<const Fusion> FusionsIn(Precision precision);

// Computes on a card, which outlives it. Throws Error where a library is missing.
std::unique_ptr<Engine> MakeEngine(CudaDevice& device, Precision precision,
                                   const EngineOptions& options);

}  // namespace trireme::cuda
