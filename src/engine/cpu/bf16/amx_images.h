#pragma once
#include "engine/cpu/bf16/images.h"

// AMX's half of an ImageUnit: amx_rows.cc, amx_taps.cc.

namespace trireme::cpu::amx {

void MultiplyRows(const RowProduct& product, size_t begin, size_t end, size_t panel_begin,
                  size_t panel_end);
void MultiplyTaps(const TapProduct& product, size_t panel_begin, size_t panel_end);
void NarrowLine(const float* from, size_t count, BFloat* to);

}  // namespace trireme::cpu::amx
