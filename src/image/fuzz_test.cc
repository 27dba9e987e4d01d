// Files are untrusted: whatever bytes they hold, decoding them succeeds or throws an Error.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "image/exif.h"
#include "image/renderer.h"
#include "image/testing.h"

namespace trireme {
namespace {

class Dice {
 public:
  size_t Below(size_t limit) { return limit == 0 ? 0 : Hash(7, count_++) % limit; }

 private:
  uint64_t count_ = 0;
};

std::string Mutate(std::string bytes, Dice& dice) {
  for (size_t i = 1 + dice.Below(4); i > 0; --i) {
    // Headers are short and decide most.
    const size_t at =
        dice.Below(dice.Below(2) == 0 ? bytes.size() : std::min<size_t>(bytes.size(), 700));
    switch (dice.Below(5)) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        bytes.insert(at, dice.Below(2) == 0 ? "\xff\xd9" : "\xff\xff\xff\xff");
        break;
      case 2:
        bytes.erase(at, 1 + dice.Below(8));
        break;
      default:
        if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ 1 << dice.Below(8));
    }
  }
  return bytes;
}

struct Tally {
  int accepted = 0, refused = 0;
};

Tally Fuzz(const std::vector<std::string>& seeds, int rounds) {
  Tally tally;
  Dice dice;
  Renderer renderer;
  for (int round = 0; round < rounds; ++round) {
    const std::string bytes = Mutate(seeds[dice.Below(seeds.size())], dice);
    try {
      // A mutated size is held to what a test can wait for.
      const auto size = OpenPicture(BytesOf(bytes), "f")->size();
      if (int64_t{size.width} * size.height > 1 << 20) continue;
      OpenPicture(BytesOf(bytes), "f")->Verify();
      const auto picture = OpenPicture(BytesOf(bytes), "f");
      const Box box = {int(dice.Below(size.width)), int(dice.Below(size.height)), 1, 1};
      const View view = {{box.left, box.top, 1 + int(dice.Below(size.width - box.left)),
                          1 + int(dice.Below(size.height - box.top))},
                         dice.Below(2) == 0};
      std::vector<float> pixels(3 * 20 * 10);
      renderer.Draw(*picture, view, {20, 10}, {}, pixels.data());
      for (const float value : pixels) EXPECT_TRUE(value >= -1e-4f && value <= 1.0001f) << value;
      ++tally.accepted;
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("f: ")) << error.what();
      ++tally.refused;
    }
  }
  EXPECT_GT(tally.accepted, rounds / 100);
  EXPECT_GT(tally.refused, rounds / 10);
  return tally;
}

TEST(Fuzz, Jpeg) {
  const RgbPicture picture = SmoothPicture(45, 37);
  Fuzz({MakeJpeg(picture), MakeJpeg(picture, {}, 6),
        MakeJpeg(picture, [](jpeg_compress_struct& info) { jpeg_simple_progression(&info); }),
        MakeJpeg(picture, [](jpeg_compress_struct& info) { info.restart_interval = 2; })},
       3000);
}

TEST(Fuzz, Png) {
  const RgbPicture picture = SmoothPicture(45, 37);
  Fuzz({MakePng(picture), MakePng(picture, {16, PNG_COLOR_TYPE_RGB_ALPHA, true}),
        MakePng(picture, {4, PNG_COLOR_TYPE_PALETTE, false, true})},
       3000);
}

TEST(Fuzz, Exif) {
  Dice dice;
  const std::string block("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0", 26);
  for (int round = 0; round < 20'000; ++round) {
    const int orientation = ReadOrientation(BytesOf(Mutate(block, dice)));
    EXPECT_TRUE(orientation >= 1 && orientation <= 8);
  }
}

}  // namespace
}  // namespace trireme
