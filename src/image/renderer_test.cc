#include "image/renderer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "image/raw_picture.h"
#include "image/testing.h"

namespace trireme {
namespace {

// A picture that is said to be turned.
class TurnedPicture : public RawPicture {
 public:
  TurnedPicture(const RgbPicture& picture, int exif)
      : RawPicture(picture.rgb.data(), picture.size) {
    orientation_ = OrientationOf(exif);
  }
};

RgbPicture Noise(int width, int height) {
  RgbPicture picture{{width, height}, std::vector<uint8_t>(size_t(3) * width * height)};
  uint32_t state = 1;
  for (uint8_t& value : picture.rgb)
    value = static_cast<uint8_t>((state = state * 69069 + 1) >> 24);
  return picture;
}

// Plain loops in double over the whole triangle.
double Expected(const RgbPicture& picture, const Box& box, PictureSize size, int x, int y, int c) {
  const auto weigh = [](int begin, int length, int count, int at, int pixel) {
    const double scale = double(length) / count, width = std::max(1.0, scale);
    if (pixel < begin || pixel >= begin + length) return 0.0;
    return std::max(0.0, 1 - std::abs(pixel + 0.5 - begin - (at + 0.5) * scale) / width);
  };
  double sum = 0, weights = 0;
  for (int v = 0; v < picture.size.height; ++v) {
    for (int u = 0; u < picture.size.width; ++u) {
      const double weight = weigh(box.left, box.width, size.width, x, u) *
                            weigh(box.top, box.height, size.height, y, v);
      sum += weight * picture.at(u, v)[c];
      weights += weight;
    }
  }
  return sum / weights;
}

TEST(Renderer, ResizesAsPlainLoopsDo) {
  const RgbPicture picture = Noise(37, 23);
  const Colours colours = {{2, 3, 4}, {-1, 0.5f, 0}};
  for (const Box& box : {Box{0, 0, 37, 23}, Box{5, 3, 20, 17}, Box{36, 22, 1, 1}}) {
    for (const PictureSize size : {PictureSize{5, 4}, PictureSize{1, 1}, PictureSize{50, 60}}) {
      for (const bool mirrored : {false, true}) {
        std::vector<float> pixels(size_t(3) * size.width * size.height);
        RawPicture raw(picture.rgb.data(), picture.size);
        Renderer().Draw(raw, {box, mirrored}, size, colours, pixels.data());
        for (int y = 0; y < size.height; ++y) {
          for (int x = 0; x < size.width; ++x) {
            for (int c = 0; c < 3; ++c) {
              const int from = mirrored ? size.width - 1 - x : x;
              const double value = Expected(picture, box, size, from, y, c);
              EXPECT_NEAR(pixels[3 * (y * size.width + x) + c],
                          value / 255 * colours.scale[c] + colours.shift[c], 1e-5);
            }
          }
        }
      }
    }
  }
}

TEST(Renderer, BytesAreTheFloatsRounded) {
  const RgbPicture picture = Noise(61, 47);
  const PictureSize size = {33, 29};
  std::vector<float> floats(size_t(3) * 33 * 29);
  std::vector<uint8_t> bytes(floats.size());
  RawPicture one(picture.rgb.data(), picture.size), two(picture.rgb.data(), picture.size);
  Renderer renderer;
  renderer.Draw(one, {{1, 2, 50, 40}}, size, {{255, 255, 255}}, floats.data());
  renderer.Draw(two, {{1, 2, 50, 40}}, size, bytes.data());
  for (size_t i = 0; i < bytes.size(); ++i) EXPECT_NEAR(bytes[i], floats[i], 0.501);
}

// The upright pixel (x, y) for each orientation, by EXIF's words: where the stored row 0 and column
// 0 are seen.
TEST(Renderer, TurnsAsExifSays) {
  const RgbPicture picture = Noise(5, 3);
  for (int exif = 1; exif <= 8; ++exif) {
    TurnedPicture turned(picture, exif);
    const PictureSize size = turned.size();
    EXPECT_EQ(size, exif < 5 ? PictureSize({5, 3}) : PictureSize({3, 5}));
    std::vector<uint8_t> pixels(picture.rgb.size());
    Renderer().Draw(turned, {{0, 0, size.width, size.height}}, size, pixels.data());
    for (int row = 0; row < 3; ++row) {
      for (int column = 0; column < 5; ++column) {
        const int right = 4 - column, below = 2 - row;
        const int x[] = {column, right, right, column, row, below, below, row};
        const int y[] = {row, row, below, below, column, column, right, right};
        const uint8_t* seen = pixels.data() + 3 * (y[exif - 1] * size.width + x[exif - 1]);
        EXPECT_TRUE(std::equal(seen, seen + 3, picture.at(column, row))) << exif;
      }
    }
  }
}

TEST(Renderer, APartOfATurnedPictureIsThePartOfTheUprightOne) {
  const RgbPicture picture = Noise(40, 30);
  for (int exif = 1; exif <= 8; ++exif) {
    TurnedPicture turned(picture, exif);
    RgbPicture upright{turned.size(), std::vector<uint8_t>(picture.rgb.size())};
    Renderer renderer;
    renderer.Draw(turned, {{0, 0, upright.size.width, upright.size.height}}, upright.size,
                  upright.rgb.data());
    std::vector<float> part(3 * 9 * 7), expected(3 * 9 * 7);
    const View view = {{4, 6, 20, 13}, true};
    TurnedPicture again(picture, exif);
    renderer.Draw(again, view, {9, 7}, {}, part.data());
    RawPicture raw(upright.rgb.data(), upright.size);
    renderer.Draw(raw, view, {9, 7}, {}, expected.data());
    for (size_t i = 0; i < part.size(); ++i) EXPECT_NEAR(part[i], expected[i], 1e-5) << exif;
  }
}

}  // namespace
}  // namespace trireme
