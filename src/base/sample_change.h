#pragma once
#include <cstdint>

namespace trireme {

// Other colours, of values from 0 to 1: a pixel's distance from its own grey is multiplied, where
// there are three channels; then all values are multiplied, the offset is added, and what leaves 0
// to 1 is cut off.
struct ColourChange {
  float saturation = 1, gain = 1, offset = 0;

  bool operator==(const ColourChange&) const = default;
};

// An affine map of places, in pixels from the middle of the picture: what a network sees at (x, y)
// comes from (x_of_x * x + x_of_y * y + x, y_of_x * x + y_of_y * y + y).
struct PlaceMap {
  float x_of_x = 1, x_of_y = 0, x = 0;
  float y_of_x = 0, y_of_y = 1, y = 0;

  bool operator==(const PlaceMap&) const = default;
};

// How the picture that a network sees differs from the one that is stored, as numbers: it is
// mirrored, then moved, then mapped, then has other colours, then a rectangle of it is erased. An
// augmentation says it (data/augment.h); whoever holds the picture applies it, on the processor or
// on a card.
struct SampleChange {
  int32_t mirrored = 0;                            // 1: left and right change places
  int32_t down = 0, right = 0;                     // by so many pixels; what comes in is black
  int32_t top = 0, left = 0, bottom = 0, end = 0;  // rows [top, bottom), columns [left, end)
  PlaceMap map = {};                               // what comes in is black
  ColourChange colours = {};

  bool operator==(const SampleChange&) const = default;
};

// What a network sees of bytes: height x width x channels of them, byte / 255 * scale + shift.
struct ByteLook {
  int height = 1, width = 1, channels = 1;
  const float* scale = nullptr;  // of each channel
  const float* shift = nullptr;

  constexpr int64_t size() const { return int64_t{height} * width * channels; }
};

// The value from 0 to 1 behind a normalised one. Of a channel without a scale nothing is known but
// its shift, which it keeps.
constexpr float ShownBy(const ByteLook& look, int channel, float normalised) {
  const float scale = look.scale[channel];
  return scale == 0 ? 0 : (normalised - look.shift[channel]) / scale;
}

// Of three normalised channels, as in ITU-R BT.601.
constexpr float GreyOf(const ByteLook& look, float red, float green, float blue) {
  return 0.299f * ShownBy(look, 0, red) + 0.587f * ShownBy(look, 1, green) +
         0.114f * ShownBy(look, 2, blue);
}

// A normalised value with other colours. `grey` is of its pixel, where there are three channels.
constexpr float Recoloured(const ColourChange& colours, const ByteLook& look, int channel,
                           float normalised, float grey) {
  float value = ShownBy(look, channel, normalised);
  if (look.channels == 3) value = grey + (value - grey) * colours.saturation;
  value = value * colours.gain + colours.offset;
  value = value < 0 ? 0 : value > 1 ? 1 : value;
  return value * look.scale[channel] + look.shift[channel];
}

// A place between four pixels: (row, column) and the three to the right and below, and how far it
// is from the first.
struct Spot {
  int row, column;
  float down, right;
};

// Where what is seen at a place comes from. What is far outside stays outside by a pixel.
constexpr Spot SpotOf(const PlaceMap& map, int height, int width, int y, int x) {
  const float middle_x = 0.5f * static_cast<float>(width - 1);
  const float middle_y = 0.5f * static_cast<float>(height - 1);
  const float right = static_cast<float>(x) - middle_x, down = static_cast<float>(y) - middle_y;
  float from_x = map.x_of_x * right + map.x_of_y * down + map.x + middle_x;
  float from_y = map.y_of_x * right + map.y_of_y * down + map.y + middle_y;
  const float last_x = static_cast<float>(width), last_y = static_cast<float>(height);
  from_x = from_x < -1 ? -1 : from_x > last_x ? last_x : from_x;
  from_y = from_y < -1 ? -1 : from_y > last_y ? last_y : from_y;
  const int column = static_cast<int>(from_x + 1) - 1, row = static_cast<int>(from_y + 1) - 1;
  return {row, column, from_y - static_cast<float>(row), from_x - static_cast<float>(column)};
}

// The value at a spot, linear between those that value(row, column) gives.
template <class Value>
constexpr float Between(const Spot& spot, const Value& value) {
  const float upper_left = value(spot.row, spot.column);
  const float upper_right = value(spot.row, spot.column + 1);
  const float lower_left = value(spot.row + 1, spot.column);
  const float lower_right = value(spot.row + 1, spot.column + 1);
  const float upper = upper_left + (upper_right - upper_left) * spot.right;
  const float lower = lower_left + (lower_right - lower_left) * spot.right;
  return upper + (lower - upper) * spot.down;
}

// The value at a place of a sample that is mirrored and moved; outside it is black, byte 0.
// Multiplied and added one after the other, in the order of data/scale.h.
constexpr float MovedAt(const uint8_t* sample, const ByteLook& look, const SampleChange& change,
                        int y, int x, int channel) {
  const int row = y - change.down, moved = x - change.right;
  const bool inside = row >= 0 && row < look.height && moved >= 0 && moved < look.width && y >= 0 &&
                      y < look.height && x >= 0 && x < look.width;
  const int column = change.mirrored ? look.width - 1 - moved : moved;
  const uint8_t byte =
      inside ? sample[(int64_t{row} * look.width + column) * look.channels + channel] : uint8_t{0};
  return static_cast<float>(byte) * (1.0f / 255) * look.scale[channel] + look.shift[channel];
}

// And mapped.
constexpr float PlacedAt(const uint8_t* sample, const ByteLook& look, const SampleChange& change,
                         int y, int x, int channel) {
  if (change.map == PlaceMap()) return MovedAt(sample, look, change, y, x, channel);
  return Between(SpotOf(change.map, look.height, look.width, y, x), [&](int row, int column) {
    return MovedAt(sample, look, change, row, column, channel);
  });
}

// The value at a place of a changed sample: it has the bits of a sample that is normalised first
// and changed then. What is erased is 0. Also for cards, where the compiler must not fuse.
constexpr float ValueAt(const uint8_t* sample, const ByteLook& look, const SampleChange& change,
                        int y, int x, int channel) {
  if (y >= change.top && y < change.bottom && x >= change.left && x < change.end) return 0;
  const float value = PlacedAt(sample, look, change, y, x, channel);
  if (change.colours == ColourChange()) return value;
  float grey = 0;
  if (look.channels == 3) {
    grey = GreyOf(look, PlacedAt(sample, look, change, y, x, 0),
                  PlacedAt(sample, look, change, y, x, 1), PlacedAt(sample, look, change, y, x, 2));
  }
  return Recoloured(change.colours, look, channel, value, grey);
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
