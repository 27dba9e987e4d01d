#pragma once
#include "engine/cuda/device.h"
#include "graph/engine_options.h"

// What a card can do at best, measured and sustained: the ceilings that shares of peak refer to.

namespace trireme::cuda {

// Multiplications and additions per second of large products of random matrices by cuBLASLt, for
// about so many seconds.
double MeasureProducts(CudaDevice& card, Precision precision, double seconds);

// Bytes per second copied from the card's memory to its memory.
double MeasureCopy(CudaDevice& card, double seconds);

}  // namespace trireme::cuda
