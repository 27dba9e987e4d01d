// Where the tiles of a Winograd convolution lie in their images.
#if defined(TRIREME_ENGINE_CPU_WINOGRAD_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_ENGINE_CPU_WINOGRAD_TILES_INL_H_
#undef TRIREME_ENGINE_CPU_WINOGRAD_TILES_INL_H_
#else
#define TRIREME_ENGINE_CPU_WINOGRAD_TILES_INL_H_
#endif

#include <algorithm>

#include "engine/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {

// Images that are cut into tiles, `step` apart from pixel `first` on; tiles may reach beyond.
struct TiledImages {
  const float* data;
  ptrdiff_t height, width;
  size_t channels;
  size_t tiles_y, tiles_x;  // of an image
  ptrdiff_t step, first;

  size_t tiles() const { return tiles_y * tiles_x; }
};

// The pixels of one tile of N x N: pointers to their channels, or to zeros outside of the image.
template <size_t N>
struct TilePixels {
  const float* at[N][N];

  TilePixels(const TiledImages& images, size_t tile, const float* zeros) {
    const size_t sample = tile / images.tiles(), in_image = tile % images.tiles();
    const ptrdiff_t y0 = ptrdiff_t(in_image / images.tiles_x) * images.step + images.first;
    const ptrdiff_t x0 = ptrdiff_t(in_image % images.tiles_x) * images.step + images.first;
    const ptrdiff_t channels = ptrdiff_t(images.channels);
    const float* image = images.data + ptrdiff_t(sample) * images.height * images.width * channels;
    for (ptrdiff_t i = 0; i < ptrdiff_t(N); ++i) {
      for (ptrdiff_t j = 0; j < ptrdiff_t(N); ++j) {
        const ptrdiff_t y = y0 + i, x = x0 + j;
        const bool inside = y >= 0 && y < images.height && x >= 0 && x < images.width;
        at[i][j] = inside ? image + (y * images.width + x) * channels : zeros;
      }
    }
  }
};

// Rows of floats whose distance is no power of two, or many of them would share a cache set.
constexpr size_t Apart(size_t floats) { return hwy::RoundUpTo(floats, 16) + 16; }

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
