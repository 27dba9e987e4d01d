#include "image/png.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "image/renderer.h"
#include "image/testing.h"

namespace trireme {
namespace {

RgbPicture Decode(const std::string& bytes, const Box& box) {
  RgbPicture result{{box.width, box.height},
                    std::vector<uint8_t>(size_t(3) * box.width * box.height)};
  const auto picture = OpenPicture(BytesOf(bytes), "a.png");
  Renderer().Draw(*picture, {box}, result.size, result.rgb.data());
  return result;
}

std::vector<PngKind> Kinds() {
  std::vector<PngKind> kinds;
  for (const bool interlaced : {false, true}) {
    for (const int bits : {8, 16}) {
      for (const int colours : {PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA, PNG_COLOR_TYPE_GRAY,
                                PNG_COLOR_TYPE_GRAY_ALPHA}) {
        kinds.push_back({bits, colours, interlaced});
      }
    }
    for (const int bits : {1, 2, 4, 8}) {
      kinds.push_back({bits, PNG_COLOR_TYPE_PALETTE, interlaced});
      kinds.push_back({bits, PNG_COLOR_TYPE_GRAY, interlaced});
    }
  }
  for (size_t i = kinds.size(); i-- > 0;) {
    PngKind clear = kinds[i];
    clear.transparent = true;
    if ((clear.colours & PNG_COLOR_MASK_ALPHA) == 0) kinds.push_back(clear);
  }
  return kinds;
}

TEST(Png, EveryKindIsDecodedExactly) {
  const RgbPicture picture = SmoothPicture(37, 21);
  for (const PngKind& kind : Kinds()) {
    const std::string bytes = MakePng(picture, kind);
    const int levels = 1 << std::min(8, kind.bits);
    const bool colour =
        kind.colours == PNG_COLOR_TYPE_RGB || kind.colours == PNG_COLOR_TYPE_RGB_ALPHA;
    for (const Box& box : {Box{0, 0, 37, 21}, Box{5, 7, 20, 10}}) {
      const RgbPicture part = Decode(bytes, box);
      for (int y = 0; y < box.height; ++y) {
        for (int x = 0; x < box.width; ++x) {
          for (int c = 0; c < 3; ++c) {
            const int value = picture.at(box.left + x, box.top + y)[colour ? c : 0];
            EXPECT_EQ(part.at(x, y)[c], value * levels / 256 * 255 / (levels - 1))
                << kind.bits << " " << kind.colours << " " << kind.transparent;
          }
        }
      }
    }
    OpenPicture(BytesOf(bytes), "a.png")->Verify();
  }
}

TEST(Png, ACutOrDamagedFileIsRefusedWithItsName) {
  const RgbPicture picture = SmoothPicture(64, 64);
  for (const bool interlaced : {false, true}) {
    const std::string bytes = MakePng(picture, {.interlaced = interlaced});
    std::string damaged = bytes;
    damaged[bytes.size() / 2] ^= 1;
    for (const std::string& bad :
         {bytes.substr(0, 10), bytes.substr(0, 40), bytes.substr(0, bytes.size() / 2), damaged}) {
      try {
        Decode(bad, {0, 0, 64, 64});
        ADD_FAILURE() << "not refused";
      } catch (const Error& error) {
        EXPECT_TRUE(std::string(error.what()).starts_with("a.png: ")) << error.what();
      }
      EXPECT_THROW(OpenPicture(BytesOf(bad), "a.png")->Verify(), Error);
    }
  }
}

}  // namespace
}  // namespace trireme
