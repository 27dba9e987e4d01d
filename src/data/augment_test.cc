#include "data/augment.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/random.h"
#include "base/text.h"
#include "data/testing.h"

namespace trireme {
namespace {

constexpr SampleShape kShape{9, 11, 2};

std::vector<float> Picture() {
  std::vector<float> picture(kShape.size());
  for (size_t i = 0; i < picture.size(); ++i) picture[i] = static_cast<float>(i + 1);
  return picture;
}

Normalizer SomeNormalizer() { return {{2, 3}, {-0.5f, -0.25f}}; }

// Surrounds by black, flips, and cuts at (top, left): the words of the paper, written plainly.
std::vector<float> CropOf(const std::vector<float>& picture, bool flip, int top, int left) {
  std::vector<float> out;
  for (int y = 0; y < kShape.height; ++y) {
    for (int x = 0; x < kShape.width; ++x) {
      for (int c = 0; c < kShape.channels; ++c) {
        const int from_y = y + top - 4;
        int from_x = x + left - 4;
        const bool inside =
            from_y >= 0 && from_y < kShape.height && from_x >= 0 && from_x < kShape.width;
        if (flip) from_x = kShape.width - 1 - from_x;
        out.push_back(inside ? picture[(from_y * kShape.width + from_x) * kShape.channels + c]
                             : SomeNormalizer().shift()[c]);
      }
    }
  }
  return out;
}

TEST(Augment, CropFlipGivesEveryCropOfThePaddedPictureAndNothingElse) {
  std::map<std::vector<float>, int> possible;
  for (int i = 0; i < 2 * 81; ++i) {
    possible[CropOf(Picture(), i >= 81, i % 81 / 9, i % 9)] = 0;
  }
  ASSERT_EQ(possible.size(), 162u);
  const Augment augment("crop-flip", 3, kShape, SomeNormalizer());
  for (int sample = 0; sample < 20'000; ++sample) {
    std::vector<float> picture = Picture();
    augment.Apply(1, sample, picture);
    ASSERT_TRUE(possible.contains(picture));
    ++possible[picture];
  }
  for (const auto& [picture, count] : possible) {
    EXPECT_NEAR(count, 20'000 / 162, 60);  // deviation 11
  }
}

TEST(Augment, FlipMirrorsHalfOfThePictures) {
  const Augment augment("flip", 3, kShape, SomeNormalizer());
  int flipped = 0;
  for (int sample = 0; sample < 1000; ++sample) {
    std::vector<float> picture = Picture();
    augment.Apply(0, sample, picture);
    if (picture == Picture()) continue;
    EXPECT_EQ(picture, CropOf(Picture(), true, 4, 4));
    ++flipped;
  }
  EXPECT_NEAR(flipped, 500, 80);
}

TEST(Augment, DependsOnSeedEpochAndSampleOnly) {
  const auto draws = [](uint64_t seed, int64_t epoch, int64_t first) {
    std::vector<std::vector<float>> all;
    const Augment augment("crop-flip", seed, kShape, SomeNormalizer());
    for (int64_t i = 0; i < 10; ++i) {
      all.push_back(Picture());
      augment.Apply(epoch, first + i, all.back());
    }
    return all;
  };
  EXPECT_EQ(draws(1, 2, 3), draws(1, 2, 3));
  const std::set<std::vector<std::vector<float>>> different = {draws(1, 2, 3), draws(2, 2, 3),
                                                               draws(1, 3, 3), draws(1, 2, 40)};
  EXPECT_EQ(different.size(), 4u);
}

TEST(Augment, TinyPicturesAreShiftedByTheirSizeAtMost) {
  const SampleShape tiny{2, 3, 1};
  const Augment augment("crop-flip", 3, tiny, Normalizer::Identity(1));
  for (int sample = 0; sample < 200; ++sample) {
    std::vector<float> picture = {1, 2, 3, 4, 5, 6};
    augment.Apply(0, sample, picture);
    for (const float value : picture) EXPECT_TRUE(value >= 0 && value <= 6);
  }
}

TEST(Augment, RefusesTablesAndUnknownKinds) {
  EXPECT_FALSE(Augment("none", 1, {1, 1, 4}, Normalizer::Identity(4)).active());
  EXPECT_TRUE(Holds(Refusal([] {
                      Augment("flip", 1, {1, 1, 4}, Normalizer::Identity(4));
                    }),
                    {"data.augment", "needs images", "1 x 1 x 4"}));
  EXPECT_TRUE(Holds(Refusal([] { Augment("mixup", 1, kShape, SomeNormalizer()); }),
                    {"data.augment", "mixup"}));
}

TEST(Augment, EraseMakesARectangleOfZerosEveryOtherTime) {
  const SampleShape shape{40, 60, 3};
  const Augment augment("erase", 3, shape, Normalizer::Identity(3));
  int erased = 0;
  for (int sample = 0; sample < 400; ++sample) {
    std::vector<float> picture(shape.size(), 1.0f);
    augment.Apply(1, sample, picture);
    int top = 40, left = 60, bottom = 0, right = 0, zeros = 0;
    for (int y = 0; y < 40; ++y) {
      for (int x = 0; x < 60; ++x) {
        if (picture[(y * 60 + x) * 3] != 0) continue;
        ++zeros;
        top = std::min(top, y), bottom = std::max(bottom, y + 1);
        left = std::min(left, x), right = std::max(right, x + 1);
      }
    }
    if (zeros == 0) continue;
    ++erased;
    EXPECT_EQ(zeros, (bottom - top) * (right - left));
    EXPECT_GE(zeros, 2400 * 0.015);
    EXPECT_LE(zeros, 2400 * 0.35);
  }
  EXPECT_NEAR(erased, 200, 50);
}

// Numbers applied to bytes give the bits of a picture that is normalised, then changed by one kind
// after the other, whatever their order.
TEST(Augment, ChangesOfBytesAreThoseOfValues) {
  const Random random(1);
  std::vector<uint8_t> bytes(kShape.size());
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(random.Bits(i));
  const Normalizer normalizer({2.1f, 3.7f}, {-0.53f, -0.26f});
  const ByteLook look{kShape.height, kShape.width, kShape.channels, normalizer.scale().data(),
                      normalizer.shift().data()};
  for (const char* kinds : {"none", "flip", "pad-crop", "erase", "flip,pad-crop", "pad-crop,flip",
                            "flip,pad-crop,erase", "flip,erase,pad-crop", "pad-crop,flip,erase",
                            "pad-crop,erase,flip", "erase,flip,pad-crop", "erase,pad-crop,flip"}) {
    const Augment augment(kinds, 3, kShape, normalizer);
    std::vector<Augment> each;
    for (const std::string& kind : Split(kinds, ','))
      each.emplace_back(kind, 3, kShape, normalizer);
    for (int64_t sample = 0; sample < 300; ++sample) {
      std::vector<float> plain(bytes.size()), values(bytes.size()), drawn(bytes.size());
      normalizer.Apply(bytes, plain.data());
      values = plain;
      for (const Augment& one : each) one.Apply(2, sample, plain);
      const SampleChange change = augment.Change(2, sample);
      augment.Apply(change, values);
      DrawSample(bytes.data(), look, change, drawn.data());
      ASSERT_EQ(values, plain) << kinds << ", sample " << sample;
      ASSERT_EQ(drawn, plain) << kinds << ", sample " << sample;
    }
  }
  EXPECT_TRUE(Holds(Refusal([&] { Augment("flip,erase, flip", 3, kShape, normalizer); }),
                    {"data.augment", "names flip twice"}));
}

TEST(Augment, WhereReadingCutsItAlsoFlips) {
  const SampleShape shape{8, 8, 3};
  const Normalizer normalizer = Normalizer::Identity(3);
  const Augment cut("random-resized-crop, flip", 3, shape, normalizer, true, 0.3);
  const Augment plain("flip", 3, shape, normalizer);
  EXPECT_FALSE(cut.active());
  int mirrored = 0;
  for (int sample = 0; sample < 200; ++sample) {
    const Framing framing = cut.Frame(2, sample);
    EXPECT_EQ(framing.least_area, 0.3);
    EXPECT_NE(framing.key, cut.Frame(3, sample).key);
    std::vector<float> picture(shape.size());
    picture[0] = 1;
    plain.Apply(2, sample, picture);
    EXPECT_EQ(framing.mirrored, picture[0] == 0);
    mirrored += framing.mirrored;
  }
  EXPECT_NEAR(mirrored, 100, 40);
  EXPECT_TRUE(Holds(Refusal([&] { Augment("random-resized-crop", 3, shape, normalizer); }),
                    {"random-resized-crop works only with images:DIR"}));
  EXPECT_TRUE(Holds(Refusal([&] { Augment("flip,blur", 3, shape, normalizer); }),
                    {"there is no 'blur'", "erase"}));
}

}  // namespace
}  // namespace trireme
