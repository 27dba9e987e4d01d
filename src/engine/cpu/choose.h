#pragma once
#include "engine/cpu/options.h"
#include "engine/cpu/patches.h"

namespace trireme::cpu {

// Outputs along a tile of Winograd's algorithm (2, 4), or 0: a direct convolution. A function of
// its arguments alone, so every rank and every repetition of a run decides the same.
int ChooseWinograd(const EngineOptions& options, const ConvShape& s, int samples);

}  // namespace trireme::cpu
