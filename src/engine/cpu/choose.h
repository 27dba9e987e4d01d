#pragma once
#include <string_view>

#include "engine/cpu/tiling/patches.h"

namespace trireme::cpu {

// `winograd` is the key of section [engine]. Outputs along a tile of Winograd's algorithm (2, 4),
// or 0: a direct convolution. A function of the layer alone, so that every rank, every repetition
// and every number of shards computes the same way. Winograd's products are float32: `bf16` ones
// are as fast without and more exact, so there only who asks for it gets it.
int ChooseWinograd(std::string_view winograd, const ConvShape& s, bool bf16 = false);

}  // namespace trireme::cpu
