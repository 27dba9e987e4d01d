// The two ends of a Winograd convolution: tiles of its input become packed rows of A for each
// frequency, and their products become pixels of its output.
#if defined(TRIREME_ENGINE_CPU_WINOGRAD_ENDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_ENGINE_CPU_WINOGRAD_ENDS_INL_H_
#undef TRIREME_ENGINE_CPU_WINOGRAD_ENDS_INL_H_
#else
#define TRIREME_ENGINE_CPU_WINOGRAD_ENDS_INL_H_
#endif

#include <algorithm>

#include "engine/cpu/tile-inl.h"
#include "engine/cpu/tiling/patches.h"
#include "engine/cpu/winograd_lines-inl.h"
#include "engine/cpu/winograd_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {

// Packed rows of one register tile, `depth` deep.
constexpr size_t PackedTileFloats(size_t depth) {
  return kTileRows * hwy::RoundUpTo(depth, kGroup);
}

template <class W>
struct WinogradInput {
  TiledImages images;
  const float* zeros;  // as many as channels

  // Writes a tile as row `i` of the packed rows that register tiles read, `high` rows each;
  // frequencies are `stride` apart.
  void Turn(size_t tile, size_t i, size_t high, size_t stride, float* rows) const {
    const TilePixels<W::kTile> pixels(images, tile, zeros);
    float* row = rows + i / high * PackedTileFloats(images.channels) + i % high * kGroup;
    ForLanes(0, images.channels, [&](size_t c, size_t n) TRIREME_INLINED {
      float* to = row + c / kGroup * kTileRows * kGroup + c % kGroup;
      BothWays<typename W::Input>(
          [&](size_t a, size_t b) TRIREME_INLINED { return LoadN(pixels.at[a][b] + c, n); },
          [&](size_t a, size_t b, V value)
              TRIREME_INLINED { hn::StoreU(value, Floats(), to + (a * W::kTile + b) * stride); });
    });
  }
};

template <class W>
struct WinogradOutput {
  float* y;
  size_t height, width, channels;
  Finish finish;

  size_t tiles_y() const { return hwy::DivCeil(height, W::kOut); }
  size_t tiles_x() const { return hwy::DivCeil(width, W::kOut); }

  // Channels [first, first + count) of a tile, from its row of products; frequencies are `stride`
  // apart.
  void Turn(size_t tile, const float* products, size_t stride, size_t first, size_t count) const {
    const size_t tiles = tiles_y() * tiles_x(), in_image = tile % tiles;
    const size_t y0 = in_image / tiles_x() * W::kOut, x0 = in_image % tiles_x() * W::kOut;
    const size_t rows = std::min(W::kOut, height - y0), columns = std::min(W::kOut, width - x0);
    float* to = y + ((tile / tiles * height + y0) * width + x0) * channels + first;
    const float* biases = finish.bias ? finish.bias + first : nullptr;
    ForLanes(0, count, [&](size_t c, size_t n) TRIREME_INLINED {
      const V bias = biases ? LoadN(biases + c, n) : hn::Zero(Floats());
      BothWays<typename W::Output>(
          [&](size_t a, size_t b)
              TRIREME_INLINED { return LoadN(products + (a * W::kTile + b) * stride + c, n); },
          [&](size_t a, size_t b, V value) TRIREME_INLINED {
            if (a >= rows || b >= columns) return;
            value = hn::Add(value, bias);
            if (finish.relu) value = PositivePart(value);
            StoreN(value, to + (a * width + b) * channels + c, n, finish.stream);
          });
    });
  }
};

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
