#pragma once
#include <cstdint>

namespace trireme {

struct PictureSize {
  int width = 0;
  int height = 0;
  bool operator==(const PictureSize&) const = default;
};

// A part of a picture, in whole pixels.
struct Box {
  int left = 0, top = 0, width = 0, height = 0;
  bool operator==(const Box&) const = default;
};

// Pixels that a decoder takes: at most 2^27 of them (134 megapixels), so a file of some bytes
// cannot ask for all memory.
constexpr int64_t kMaxPixels = int64_t{1} << 27;

// How a stored picture becomes upright: transposed first (rows become columns), then mirrored.
struct Orientation {
  bool transpose = false;
  bool mirror_x = false;  // left and right, of the upright picture
  bool mirror_y = false;  // up and down
  bool operator==(const Orientation&) const = default;
};

// Of EXIF's orientation 1 to 8; anything else is upright.
constexpr Orientation OrientationOf(int orientation) {
  switch (orientation) {
    case 2:
      return {false, true, false};
    case 3:
      return {false, true, true};
    case 4:
      return {false, false, true};
    case 5:
      return {true, false, false};
    case 6:
      return {true, true, false};
    case 7:
      return {true, true, true};
    case 8:
      return {true, false, true};
    default:
      return {};
  }
}

constexpr PictureSize Upright(PictureSize stored, Orientation orientation) {
  return orientation.transpose ? PictureSize{stored.height, stored.width} : stored;
}

// Where a part of the upright picture lies in the stored one, whose upright size is `upright`.
constexpr Box Stored(Box box, PictureSize upright, Orientation orientation) {
  if (orientation.mirror_x) box.left = upright.width - box.left - box.width;
  if (orientation.mirror_y) box.top = upright.height - box.top - box.height;
  if (orientation.transpose) return {box.top, box.left, box.height, box.width};
  return box;
}

}  // namespace trireme
