#pragma once
#include <cuda_runtime_api.h>

#include <string>

#include "engine/cuda/libraries.h"

namespace trireme::cuda {

// What the bits of results depend on, in words (Engine::target): the card and the libraries.
std::string TargetOf(const cudaDeviceProp& card, const Libraries& libraries);

}  // namespace trireme::cuda
