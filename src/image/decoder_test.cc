#include "image/decoder.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "image/exif.h"
#include "image/testing.h"

namespace trireme {
namespace {

TEST(Decoder, TheContentDecidesNotTheName) {
  const RgbPicture picture = SmoothPicture(9, 7);
  EXPECT_EQ(OpenPicture(BytesOf(MakePng(picture)), "a.jpg")->size(), picture.size);
  EXPECT_EQ(OpenPicture(BytesOf(MakeJpeg(picture)), "a.png")->size(), picture.size);
  for (const std::string bytes : {"", "GIF89a", "\xff", "\x89PN"}) {
    EXPECT_THROW(OpenPicture(BytesOf(bytes), "a"), Error);
  }
}

TEST(Decoder, PicturesAreKnownByTheirNames) {
  for (const char* name : {"a.jpg", "b/a.JPEG", "x.Png", "a.b.jpg"})
    EXPECT_TRUE(HasPictureName(name));
  for (const char* name : {"jpg", ".jpg", "a.jpg.txt", "a.gif", ""}) {
    EXPECT_FALSE(HasPictureName(name)) << name;
  }
}

TEST(Decoder, SizesAreLimited) {
  CheckPictureSize(1, 1, "a");
  CheckPictureSize(kMaxPixels, 1, "a");
  CheckPictureSize(1 << 14, 1 << 13, "a");
  for (const auto& [width, height] : std::vector<std::pair<int64_t, int64_t>>{
           {0, 1}, {1, 0}, {kMaxPixels + 1, 1}, {1 << 14, (1 << 13) + 1}, {1 << 30, 1 << 30}}) {
    EXPECT_THROW(CheckPictureSize(width, height, "a"), Error);
  }
}

std::string Tiff(bool little, int tag, int type, int value) {
  const auto two = [&](int number) {
    const char low = static_cast<char>(number), high = static_cast<char>(number >> 8);
    return little ? std::string{low, high} : std::string{high, low};
  };
  const auto four = [&](int number) {
    return little ? two(number) + two(0) : two(0) + two(number);
  };
  return (little ? "II" : "MM") + two(42) + four(8) + two(1) + two(tag) + two(type) + four(1) +
         two(value) + two(0) + four(0);
}

TEST(Exif, OrientationOfBothByteOrders) {
  for (const bool little : {false, true}) {
    for (int value = 1; value <= 8; ++value) {
      EXPECT_EQ(ReadOrientation(BytesOf(Tiff(little, 0x112, 3, value))), value);
    }
    EXPECT_EQ(ReadOrientation(BytesOf(Tiff(little, 0x112, 3, 9))), 1);
    EXPECT_EQ(ReadOrientation(BytesOf(Tiff(little, 0x112, 4, 6))), 1);
    EXPECT_EQ(ReadOrientation(BytesOf(Tiff(little, 0x113, 3, 6))), 1);
    const std::string whole = Tiff(little, 0x112, 3, 6);
    for (size_t length = 0; length < 22; ++length) {
      EXPECT_EQ(ReadOrientation(BytesOf(whole.substr(0, length))), 1) << length;
    }
  }
}

}  // namespace
}  // namespace trireme
