#pragma once
#include <cstddef>

#include "base/team.h"
#include "engine/cpu/bf16/unit.h"
#include "engine/cpu/tiling/patches.h"

namespace trireme::cpu {

// A convolution's weight gradient (wgrad), from dy in bf16:
//   dw[tap][in][out] (+)= sum over pixels of x[pixel at the tap][in] * dy[pixel][out]
struct WeightGradient {
  ConvShape shape;
  size_t samples;
  const BFloat* x;      // null: it is
  const float* wide_x;  // rounded to bf16 as it is read
  const BFloat* dy;
  float* dw;
  bool add;  // to what dw holds
};

// How a unit computes it with kernels of its own. Threads do not change a bit.
struct WeightGradientKernels {
  bool wide;                             // x is float32, as it comes into a network
  bool (*take)(const ConvShape& shape);  // else MultiplyTransposedPatches
  void (*run)(const WeightGradient& gradient, BFloat* scratch, Team& team);
  // In BFloats, whole cache lines; for at most `samples` samples.
  size_t (*scratch)(const ConvShape& shape, size_t samples, size_t threads);
};

// Those of a unit that take a shape, or null.
inline const WeightGradientKernels* FindWeightGradient(const MatrixUnit& unit,
                                                       const ConvShape& shape, bool wide) {
  for (const WeightGradientKernels* kernels : unit.weight_gradients) {
    if (kernels->wide == wide && kernels->take(shape)) return kernels;
  }
  return nullptr;
}

}  // namespace trireme::cpu
