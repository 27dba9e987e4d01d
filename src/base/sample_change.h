#pragma once
#include <cstdint>

namespace trireme {

// How the picture that a network sees differs from the one that is stored, as numbers: it is
// mirrored, then moved, then a rectangle of it is erased. An augmentation says it
// (data/augment.h); whoever holds the picture applies it, on the processor or on a card.
struct SampleChange {
  int32_t mirrored = 0;                            // 1: left and right change places
  int32_t down = 0, right = 0;                     // by so many pixels; what comes in is black
  int32_t top = 0, left = 0, bottom = 0, end = 0;  // rows [top, bottom), columns [left, end)

  bool operator==(const SampleChange&) const = default;
};

// What a network sees of bytes: height x width x channels of them, byte / 255 * scale + shift.
struct ByteLook {
  int height = 1, width = 1, channels = 1;
  const float* scale = nullptr;  // of each channel
  const float* shift = nullptr;

  constexpr int64_t size() const { return int64_t{height} * width * channels; }
};

// The value at a place of a changed sample. Multiplied and added one after the other, in the order
// of data/scale.h: it has the bits of a sample that is normalised first and changed then. Black is
// byte 0, and what is erased is 0. Also for cards, where the compiler must not fuse.
constexpr float ValueAt(const uint8_t* sample, const ByteLook& look, const SampleChange& change,
                        int y, int x, int channel) {
  if (y >= change.top && y < change.bottom && x >= change.left && x < change.end) return 0;
  const int row = y - change.down, moved = x - change.right;
  const bool inside = row >= 0 && row < look.height && moved >= 0 && moved < look.width;
  const int column = change.mirrored ? look.width - 1 - moved : moved;
  const uint8_t byte =
      inside ? sample[(int64_t{row} * look.width + column) * look.channels + channel] : uint8_t{0};
  return static_cast<float>(byte) * (1.0f / 255) * look.scale[channel] + look.shift[channel];
}

// The whole sample.
constexpr void DrawSample(const uint8_t* sample, const ByteLook& look, const SampleChange& change,
                          float* out) {
  for (int y = 0; y < look.height; ++y) {
    for (int x = 0; x < look.width; ++x) {
      for (int c = 0; c < look.channels; ++c) *out++ = ValueAt(sample, look, change, y, x, c);
    }
  }
}

}  // namespace trireme
