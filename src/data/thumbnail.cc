#include "data/thumbnail.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/assert.h"
#include "image/png_writer.h"
#include "image/raw_picture.h"
#include "image/renderer.h"

namespace trireme {
namespace {

// RGB; values that are no shares of a byte are stretched to the range of one.
std::vector<uint8_t> PixelsOf(const std::vector<float>& values, int channels) {
  float least = 0, most = 1;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  const auto byte = [&](float value) {
    const float share = std::isfinite(value) ? (value - least) / (most - least) : 0.0f;
    return static_cast<uint8_t>(std::lround(255 * share));
  };
  const size_t pixels = values.size() / size_t(channels);
  std::vector<uint8_t> rgb(3 * pixels);
  for (size_t i = 0; i < rgb.size(); ++i) {
    rgb[i] = byte(channels == 3 ? values[i] : values[i / 3]);
  }
  return rgb;
}

std::vector<uint8_t> Enlarged(const std::vector<uint8_t>& rgb, PictureSize size, int factor) {
  std::vector<uint8_t> large;
  large.reserve(rgb.size() * size_t(factor) * size_t(factor));
  for (int y = 0; y < size.height * factor; ++y) {
    for (int x = 0; x < size.width * factor; ++x) {
      const auto at = rgb.begin() + 3 * (ptrdiff_t{y / factor} * size.width + x / factor);
      large.insert(large.end(), at, at + 3);
    }
  }
  return large;
}

}  // namespace

bool ShowsPictures(const SampleShape& shape) {
  return shape.height > 1 && shape.width > 1 && (shape.channels == 1 || shape.channels == 3);
}

std::string ThumbnailOf(const Source& samples, int64_t index, int side) {
  const SampleShape& shape = samples.shape();
  TRIREME_ASSERT(ShowsPictures(shape));
  std::vector<float> values(size_t(shape.size()));
  samples.Read(index, values);
  const PictureSize size{shape.width, shape.height};
  const std::vector<uint8_t> rgb = PixelsOf(values, shape.channels);
  const int longer = std::max(size.width, size.height);
  if (longer <= side) {
    const int factor = side / longer;
    return EncodePng(Enlarged(rgb, size, factor).data(),
                     {size.width * factor, size.height * factor});
  }
  const auto shrunk = [&](int pixels) {
    return std::max(1, int(std::lround(double(pixels) * side / longer)));
  };
  const PictureSize small{shrunk(size.width), shrunk(size.height)};
  std::vector<uint8_t> pixels(size_t(3) * size_t(small.width) * size_t(small.height));
  RawPicture picture(rgb.data(), size);
  Renderer().Draw(picture, {{0, 0, size.width, size.height}}, small, pixels.data());
  return EncodePng(pixels.data(), small);
}

}  // namespace trireme
