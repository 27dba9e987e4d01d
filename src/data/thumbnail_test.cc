#include "data/thumbnail.h"

#include <gtest/gtest.h>

#include <cmath>

#include "data/memory_source.h"
#include "image/decoder.h"
#include "image/renderer.h"

namespace trireme {
namespace {

struct Shown {
  PictureSize size;
  std::vector<uint8_t> rgb;
};

Shown Look(const Source& samples, int64_t index, int side) {
  const std::string png = ThumbnailOf(samples, index, side);
  const auto picture =
      OpenPicture({reinterpret_cast<const uint8_t*>(png.data()), png.size()}, "thumbnail");
  const PictureSize size = picture->size();
  Shown shown{size, std::vector<uint8_t>(size_t(3 * size.width * size.height))};
  Renderer().Draw(*picture, {{0, 0, size.width, size.height}}, size, shown.rgb.data());
  return shown;
}

TEST(Thumbnail, SmallPicturesAreEnlargedByAWholeFactor) {
  const ByteSource samples({2, 3, 1}, {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60}, 0, {0, 1});
  const Shown shown = Look(samples, 1, 7);
  EXPECT_EQ(shown.size, (PictureSize{6, 4}));
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 6; ++x) {
      for (int c = 0; c < 3; ++c) {
        EXPECT_EQ(shown.rgb[size_t(3 * (6 * y + x) + c)], 10 * (1 + x / 2 + 3 * (y / 2)));
      }
    }
  }
}

TEST(Thumbnail, LargeOnesAreShrunk) {
  std::vector<uint8_t> bytes;
  for (int i = 0; i < 40 * 80; ++i) bytes.insert(bytes.end(), {200, 100, 50});
  const ByteSource samples({40, 80, 3}, bytes, 0, {0});
  const Shown shown = Look(samples, 0, 20);
  EXPECT_EQ(shown.size, (PictureSize{20, 10}));
  for (size_t i = 0; i < shown.rgb.size(); i += 3) {
    EXPECT_EQ(shown.rgb[i], 200);
    EXPECT_EQ(shown.rgb[i + 1], 100);
    EXPECT_EQ(shown.rgb[i + 2], 50);
  }
}

TEST(Thumbnail, ValuesThatAreNoBytesAreStretched) {
  const FloatSource samples({2, 2, 1}, {-1, 3, 1, NAN}, {0});
  const Shown shown = Look(samples, 0, 2);
  EXPECT_EQ(shown.rgb[0], 0);
  EXPECT_EQ(shown.rgb[3], 255);
  EXPECT_EQ(shown.rgb[6], 128);
  EXPECT_EQ(shown.rgb[9], 0);
}

TEST(Thumbnail, RowsAreNoPictures) {
  EXPECT_FALSE(ShowsPictures({1, 1, 4}));
  EXPECT_FALSE(ShowsPictures({8, 8, 2}));
  EXPECT_TRUE(ShowsPictures({28, 28, 1}));
}

}  // namespace
}  // namespace trireme
