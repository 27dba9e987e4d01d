// The kernels of a Winograd convolution, turned over: a product of its own for each frequency.
#if defined(TRIREME_ENGINE_CPU_WINOGRAD_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_ENGINE_CPU_WINOGRAD_KERNELS_INL_H_
#undef TRIREME_ENGINE_CPU_WINOGRAD_KERNELS_INL_H_
#else
#define TRIREME_ENGINE_CPU_WINOGRAD_KERNELS_INL_H_
#endif

#include <algorithm>

#include "base/team.h"
#include "engine/cpu/call.h"
#include "engine/cpu/pack-inl.h"
#include "engine/cpu/tiling/divide.h"
#include "engine/cpu/winograd_lines-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {

// The kernels of a product `depth` deep and `columns` wide, as panels of B for each frequency.
template <class W>
struct WinogradKernels {
  const float* weights;  // [3][3][depth][columns], or round: turned round, [3][3][columns][depth]
  size_t depth, columns;
  bool round;

  // Rows [first, last) of panel j; `to` is where row `first` goes, frequencies are `stride` apart.
  void Turn(size_t j, size_t first, size_t last, float* to, size_t stride) const {
    const size_t width = PanelWidth(j, columns);
    for (size_t k = first; k < last; k += kStep) {
      TurnStep(j, k, std::min(last, k + kStep), to + (k - first) * width, stride);
    }
  }

  // All panels, by all threads.
  void TurnAll(float* to, size_t stride, Team& team) const {
    const size_t steps = hwy::DivCeil(depth, kStep);
    const size_t grain = 1 + kParallelWork / 8 / (kFrequencies * kStep * kTileColumns);
    ParallelFor(team, steps * PanelCount(columns), grain, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const size_t j = i / steps, k = i % steps * kStep;
        TurnStep(j, k, std::min(depth, k + kStep),
                 to + j * kTileColumns * depth + k * PanelWidth(j, columns), stride);
      }
    });
  }

 private:
  static constexpr size_t kFrequencies = W::kTile * W::kTile;
  static constexpr size_t kStep = 16;  // rows that are turned at once

  void TurnStep(size_t j, size_t first, size_t last, float* to, size_t stride) const {
    if (round) {
      TurnRound(j, first, last, to, stride);
    } else {
      TurnPlain(j, first, last, to, stride);
    }
  }

  void TurnPlain(size_t j, size_t first, size_t last, float* to, size_t stride) const {
    const size_t width = PanelWidth(j, columns), at = j * kTileColumns;
    for (size_t k = first; k < last; ++k) {
      for (size_t v = 0; v < width; v += kLanes) {
        const float* from = weights + k * columns + at + v;
        const size_t n = std::min(kLanes, columns - at - v);
        BothWays<typename W::Kernel>(
            [&](size_t a, size_t b)
                TRIREME_INLINED { return LoadN(from + (a * 3 + b) * depth * columns, n); },
            [&](size_t a, size_t b, V value) TRIREME_INLINED {
              hn::StoreU(value, Floats(),
                         to + (a * W::kTile + b) * stride + (k - first) * width + v);
            });
      }
    }
  }

  void TurnRound(size_t j, size_t first, size_t last, float* to, size_t stride) const {
    constexpr size_t kAcross = std::min<size_t>(16, kTileColumns);
    const size_t width = PanelWidth(j, columns);
    HWY_ALIGN float square[kFrequencies][kAcross * kStep];
    for (size_t c0 = 0; c0 < width; c0 += kAcross) {
      const size_t at = j * kTileColumns + c0, across = std::min(kAcross, columns - at);
      for (size_t i = 0; i < across; ++i) {
        ForLanes(first, last, [&](size_t k, size_t n) TRIREME_INLINED {
          const float* from = weights + (at + i) * depth + k;
          BothWays<typename W::Kernel>(
              [&](size_t a, size_t b)
                  TRIREME_INLINED { return LoadN(from + (8 - a * 3 - b) * depth * columns, n); },
              [&](size_t a, size_t b, V value) TRIREME_INLINED {
                hn::StoreU(value, Floats(), square[a * W::kTile + b] + i * kStep + k - first);
              });
        });
      }
      const size_t padded = hwy::RoundUpTo(across, kLanes);
      for (size_t f = 0; f < kFrequencies; ++f) {
        float* rows = to + f * stride + c0;
        Transpose(square[f], kStep, across, last - first, rows, width);
        for (size_t k = 0; across < padded && k < last - first; ++k) {
          ZeroFloats(padded - across, rows + k * width + across);
        }
      }
    }
  }
};

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
