#include "data/augment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>
#include <tuple>

#include "base/random.h"
#include "base/text.h"
#include "data/testing.h"

namespace trireme {
namespace {

constexpr SampleShape kShape{9, 11, 2};

void Apply(const Augment& augment, int64_t epoch, int64_t sample, std::span<float> picture) {
  std::vector<float> scratch;
  augment.Apply(augment.Change(epoch, sample), picture, scratch);
}

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
  const Augment augment("crop-flip", 3, {kShape}, SomeNormalizer());
  for (int sample = 0; sample < 20'000; ++sample) {
    std::vector<float> picture = Picture();
    Apply(augment, 1, sample, picture);
    ASSERT_TRUE(possible.contains(picture));
    ++possible[picture];
  }
  for (const auto& [picture, count] : possible) {
    EXPECT_NEAR(count, 20'000 / 162, 60);  // deviation 11
  }
}

TEST(Augment, FlipMirrorsHalfOfThePictures) {
  const Augment augment("flip", 3, {kShape}, SomeNormalizer());
  int flipped = 0;
  for (int sample = 0; sample < 1000; ++sample) {
    std::vector<float> picture = Picture();
    Apply(augment, 0, sample, picture);
    if (picture == Picture()) continue;
    EXPECT_EQ(picture, CropOf(Picture(), true, 4, 4));
    ++flipped;
  }
  EXPECT_NEAR(flipped, 500, 80);
}

TEST(Augment, DependsOnSeedEpochAndSampleOnly) {
  const auto draws = [](uint64_t seed, int64_t epoch, int64_t first) {
    std::vector<std::vector<float>> all;
    const Augment augment("crop-flip", seed, {kShape}, SomeNormalizer());
    for (int64_t i = 0; i < 10; ++i) {
      all.push_back(Picture());
      Apply(augment, epoch, first + i, all.back());
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
  const Augment augment("crop-flip", 3, {tiny}, Normalizer::Identity(1));
  for (int sample = 0; sample < 200; ++sample) {
    std::vector<float> picture = {1, 2, 3, 4, 5, 6};
    Apply(augment, 0, sample, picture);
    for (const float value : picture) EXPECT_TRUE(value >= 0 && value <= 6);
  }
}

TEST(Augment, RefusesTablesAndUnknownKinds) {
  EXPECT_FALSE(Augment("none", 1, {{1, 1, 4}}, Normalizer::Identity(4)).active());
  EXPECT_TRUE(Holds(Refusal([] {
                      Augment("flip", 1, {{1, 1, 4}}, Normalizer::Identity(4));
                    }),
                    {"data.augment", "needs images", "1 x 1 x 4"}));
  EXPECT_TRUE(Holds(Refusal([] { Augment("mixdown", 1, {kShape}, SomeNormalizer()); }),
                    {"data.augment", "mixdown", "mixup"}));
}

TEST(Augment, EraseMakesARectangleOfZerosEveryOtherTime) {
  const SampleShape shape{40, 60, 3};
  const Augment augment("erase", 3, {shape}, Normalizer::Identity(3));
  int erased = 0;
  for (int sample = 0; sample < 400; ++sample) {
    std::vector<float> picture(shape.size(), 1.0f);
    Apply(augment, 1, sample, picture);
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

std::vector<uint8_t> RandomBytes(uint64_t key, const SampleShape& shape) {
  const Random random(key);
  std::vector<uint8_t> bytes(static_cast<size_t>(shape.size()));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(random.Bits(i));
  return bytes;
}

Normalizer NormalizerFor(int channels) {
  return channels == 3 ? Normalizer({2.1f, 3.7f, 0}, {-0.53f, -0.26f, 0.125f})  // 0: a constant one
                       : Normalizer({2.1f, 3.7f}, {-0.53f, -0.26f});
}

ByteLook LookOf(const SampleShape& shape, const Normalizer& normalizer) {
  return {shape.height, shape.width, shape.channels, normalizer.scale().data(),
          normalizer.shift().data()};
}

// Numbers applied to bytes give the bits of a picture that is normalised, then changed by one kind
// after the other, whatever their order.
TEST(Augment, ChangesOfBytesAreThoseOfValues) {
  for (const SampleShape& shape : {kShape, SampleShape{9, 11, 3}}) {
    const std::vector<uint8_t> bytes = RandomBytes(1, shape);
    const Normalizer normalizer = NormalizerFor(shape.channels);
    const ByteLook look = LookOf(shape, normalizer);
    for (const char* kinds :
         {"none", "flip", "pad-crop", "erase", "flip,pad-crop", "pad-crop,flip",
          "flip,pad-crop,erase", "flip,erase,pad-crop", "pad-crop,flip,erase",
          "pad-crop,erase,flip", "erase,flip,pad-crop", "erase,pad-crop,flip", "colour-jitter",
          "flip,colour-jitter", "pad-crop,flip,colour-jitter,erase", "randaugment",
          "flip,pad-crop,randaugment", "flip,pad-crop,randaugment,colour-jitter,erase"}) {
      const Augment augment(kinds, 3, {shape}, normalizer);
      std::vector<Augment> each;
      for (const std::string& kind : Split(kinds, ',')) {
        each.emplace_back(kind, 3, AugmentContext{shape}, normalizer);
      }
      for (int64_t sample = 0; sample < 300; ++sample) {
        std::vector<float> plain(bytes.size()), values(bytes.size()), drawn(bytes.size());
        normalizer.Apply(bytes, plain.data());
        values = plain;
        for (const Augment& one : each) Apply(one, 2, sample, plain);
        const SampleChange change = augment.Change(2, sample);
        std::vector<float> scratch;
        augment.Apply(change, values, scratch);
        DrawSample(bytes.data(), look, change, drawn.data());
        ASSERT_EQ(values, plain) << kinds << ", sample " << sample;
        ASSERT_EQ(drawn, plain) << kinds << ", sample " << sample;
      }
    }
  }
  EXPECT_TRUE(Holds(Refusal([] { Augment("flip,erase, flip", 3, {kShape}, SomeNormalizer()); }),
                    {"data.augment", "names flip twice"}));
}

TEST(Augment, OrdersThatNumbersCannotSayAreRefused) {
  for (const auto& [kinds, late, early] :
       {std::tuple{"colour-jitter,pad-crop", "pad-crop", "colour-jitter"},
        {"erase,colour-jitter", "colour-jitter", "erase"},
        {"randaugment,flip", "flip", "randaugment"},
        {"mixup,flip", "flip", "mixup"},
        {"cutmix,erase", "erase", "cutmix"},
        {"colour-jitter,randaugment", "randaugment", "colour-jitter"}}) {
    const char* const text = kinds;
    EXPECT_TRUE(Holds(Refusal([&] { Augment(text, 3, {kShape}, SomeNormalizer()); }),
                      {std::string(late) + " after " + early, "swap them"}));
  }
  EXPECT_TRUE(Holds(Refusal([] {
                      Augment("colour-jitter", 3, {.shape = kShape, .bytes = false},
                              SomeNormalizer());
                    }),
                    {"data.augment", "colour-jitter needs images of bytes"}));
}

// The words of the help, one factor after the other, in double and on values from 0 to 1.
TEST(Augment, ColourJitterIsBrightnessContrastAndSaturation) {
  const SampleShape shape{5, 6, 3};
  const std::vector<uint8_t> bytes = RandomBytes(4, shape);
  const Normalizer normalizer({2.1f, 3.7f, 1.9f}, {-0.53f, -0.26f, 0.125f});
  const AugmentContext context{.shape = shape, .jitter = 0.3};
  const Augment augment("colour-jitter", 3, context, normalizer);
  double least = 9, most = 0;
  for (int64_t sample = 0; sample < 400; ++sample) {
    const ColourChange colours = augment.Change(1, sample).colours;
    const double contrast = 1 - 2 * colours.offset, brightness = colours.gain / contrast;
    for (const double factor : {contrast, brightness, double(colours.saturation)}) {
      least = std::min(least, factor);
      most = std::max(most, factor);
    }
    std::vector<float> values(bytes.size());
    normalizer.Apply(bytes, values.data());
    Apply(augment, 1, sample, values);
    for (size_t at = 0; at < bytes.size(); ++at) {
      const uint8_t* const pixel = bytes.data() + at / 3 * 3;
      const double grey = (0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2]) / 255;
      double value = grey + (bytes[at] / 255.0 - grey) * colours.saturation;
      value = (value * brightness - 0.5) * contrast + 0.5;
      value = std::clamp(value, 0.0, 1.0);
      ASSERT_NEAR(values[at], value * normalizer.scale()[at % 3] + normalizer.shift()[at % 3],
                  1e-5);
    }
  }
  EXPECT_GE(least, 0.7 - 1e-5);
  EXPECT_LE(least, 0.72);
  EXPECT_GE(most, 1.28);
  EXPECT_LE(most, 1.3 + 1e-5);
}

// The words of the help, one map after the other, in double: places from the middle, linear between
// pixels, black outside.
TEST(Augment, RandAugmentIsAffineMapsOneAfterTheOther) {
  const SampleShape shape{12, 9, 2};
  const std::vector<uint8_t> bytes = RandomBytes(4, shape);
  const Normalizer normalizer = NormalizerFor(2);
  for (const int operations : {1, 3}) {
    const AugmentContext context{.shape = shape, .operations = operations, .magnitude = 20};
    const Augment augment("randaugment", 3, context, normalizer);
    std::vector<float> plain(bytes.size());
    normalizer.Apply(bytes, plain.data());
    for (int64_t sample = 0; sample < 200; ++sample) {
      const PlaceMap map = augment.Change(1, sample).map;
      std::vector<float> values = plain;
      Apply(augment, 1, sample, values);
      for (int i = 0; i < int(bytes.size()); ++i) {
        const int c = i % 2, x = i / 2 % 9, y = i / 18;
        const double right = x - 4, down = y - 5.5;
        const double from_x = map.x_of_x * right + map.x_of_y * down + map.x + 4;
        const double from_y = map.y_of_x * right + map.y_of_y * down + map.y + 5.5;
        const double black = normalizer.shift()[c];
        double value = black;
        for (int row = 0; row < 12; ++row) {
          for (int column = 0; column < 9; ++column) {
            const double weight = std::max(0.0, 1 - std::abs(from_x - column)) *
                                  std::max(0.0, 1 - std::abs(from_y - row));
            value += weight * (plain[(row * 9 + column) * 2 + c] - black);
          }
        }
        ASSERT_NEAR(values[i], value, 2e-5) << sample << " at " << y << ", " << x;
      }
    }
  }
}

// With one operation: nothing, a rotation, a shear, or a shift, to both sides and all equally
// often.
TEST(Augment, RandAugmentDrawsItsMapsEquallyOften) {
  const AugmentContext context{.shape = kShape, .operations = 1, .magnitude = 15};
  const Augment augment("randaugment", 3, context, SomeNormalizer());
  std::map<std::string, int> counts;
  for (int64_t sample = 0; sample < 6000; ++sample) {
    const PlaceMap map = augment.Change(0, sample).map;
    const auto is = [&](PlaceMap want) { return map == want; };
    const float sine = std::sin(float(std::numbers::pi) / 12);
    if (is({})) ++counts["nothing"];
    for (const float sign : {-1.0f, 1.0f}) {
      if (map.x_of_x < 1) {
        EXPECT_NEAR(map.x_of_x * map.x_of_x + map.x_of_y * map.x_of_y, 1, 1e-6);
        EXPECT_EQ(map.x_of_x, map.y_of_y);
        EXPECT_EQ(map.x_of_y, -map.y_of_x);
        if (std::abs(map.x_of_y - sign * sine) < 1e-6) ++counts["rotated"];
      }
      if (is({.x_of_y = sign * 0.15f})) ++counts["sheared across"];
      if (is({.y_of_x = sign * 0.15f})) ++counts["sheared down"];
      if (is({.x = sign * float(75.0 / 331 * 11)})) ++counts["moved across"];
      if (is({.y = sign * float(75.0 / 331 * 9)})) ++counts["moved down"];
    }
  }
  ASSERT_EQ(counts.size(), 6u);
  int sum = 0;
  for (const auto& [what, count] : counts) {
    EXPECT_NEAR(count, 1000, 150) << what;  // deviation 29
    sum += count;
  }
  EXPECT_EQ(sum, 6000);
}

// A quarter turn of a square moves its pixels and reads nothing between them.
TEST(Augment, AMapOfWholePixelsIsExact) {
  const SampleShape square{7, 7, 1};
  const Normalizer normalizer({2.5f}, {-0.75f});
  const Augment augment("randaugment", 3, {square}, normalizer);
  std::vector<float> plain(49), scratch;
  normalizer.Apply(RandomBytes(2, square), plain.data());
  std::vector<float> turned = plain, moved = plain;
  augment.Apply(SampleChange{.map = {.x_of_x = 0, .x_of_y = 1, .y_of_x = -1, .y_of_y = 0}}, turned,
                scratch);
  augment.Apply(SampleChange{.map = {.x = 2, .y = -1}}, moved, scratch);
  for (int y = 0; y < 7; ++y) {
    for (int x = 0; x < 7; ++x) {
      EXPECT_EQ(turned[y * 7 + x], plain[(6 - x) * 7 + y]);
      const bool inside = x + 2 < 7 && y - 1 >= 0;
      EXPECT_EQ(moved[y * 7 + x], inside ? plain[(y - 1) * 7 + x + 2] : -0.75f);
    }
  }
}

TEST(Augment, MixupDrawsSharesFromABetaDistribution) {
  for (const double alpha : {0.2, 1.0, 2.0}) {
    const Augment augment("mixup", 3, {.shape = kShape, .mixup_alpha = alpha}, SomeNormalizer());
    EXPECT_FALSE(augment.active());
    double sum = 0, squares = 0;
    std::set<int64_t> others;
    constexpr int kCount = 20'000, kSize = 1000;
    for (int64_t sample = 0; sample < kCount; ++sample) {
      const SampleMix mix = augment.Mix(1, sample % kSize, kSize);
      const SampleMix again = augment.Mix(1, sample % kSize, kSize);
      ASSERT_EQ(mix.other, again.other);
      ASSERT_EQ(mix.share, again.share);
      ASSERT_TRUE(mix.share >= 0 && mix.share <= 1 && mix.other >= 0 && mix.other < kSize);
      const SampleMix of_epoch = augment.Mix(sample, sample % kSize, kSize);
      sum += of_epoch.share;
      squares += of_epoch.share * of_epoch.share;
      others.insert(of_epoch.other);
    }
    EXPECT_EQ(others.size(), size_t{kSize});
    const double mean = sum / kCount;
    EXPECT_NEAR(mean, 0.5, 0.02) << alpha;
    EXPECT_NEAR(squares / kCount - mean * mean, 0.25 / (2 * alpha + 1), 0.01) << alpha;
  }
}

TEST(Augment, MixupAddsSharesThatAreOneTogether) {
  const Augment augment("mixup", 3, {kShape}, SomeNormalizer());
  const std::vector<float> other(Picture().size(), -3.0f);
  const SampleMix mix{.other = 1, .share = 0.3f};
  std::vector<float> picture = Picture();
  augment.Apply(mix, other, picture);
  for (size_t i = 0; i < picture.size(); ++i) {
    EXPECT_NEAR(picture[i], 0.7 * double(i + 1) - 0.9, 1e-4);
  }
  augment.Apply(SampleMix{.share = 1}, other, picture);
  EXPECT_EQ(picture, other);
}

TEST(Augment, CutmixCountsThePixelsThatItShows) {
  const SampleShape shape{40, 60, 3};
  const Augment augment("cutmix", 3, {shape}, Normalizer::Identity(3));
  const std::vector<float> zeros(shape.size()), ones(shape.size(), 1.0f);
  double sum = 0;
  for (int64_t sample = 0; sample < 400; ++sample) {
    const SampleMix mix = augment.Mix(1, sample, 400);
    std::vector<float> picture = zeros;
    augment.Apply(mix, ones, picture);
    int shown = 0;
    for (int y = 0; y < 40; ++y) {
      for (int x = 0; x < 60; ++x) {
        const bool inside = y >= mix.top && y < mix.bottom && x >= mix.left && x < mix.end;
        for (int c = 0; c < 3; ++c) ASSERT_EQ(picture[(y * 60 + x) * 3 + c], inside ? 1 : 0);
        shown += inside;
      }
    }
    EXPECT_NEAR(mix.share, shown / 2400.0, 1e-6);
    sum += mix.share;
  }
  EXPECT_NEAR(sum / 400, 0.31, 0.06);  // half, less what lies outside of the picture
}

// Of both kinds each picture has one, half of the time.
TEST(Augment, MixupAndCutmixTakeTurns) {
  const Augment augment("mixup,cutmix", 3, {kShape}, SomeNormalizer());
  int cut = 0;
  for (int64_t sample = 0; sample < 1000; ++sample) {
    cut += augment.Mix(1, sample, 1000).bottom > 0;
  }
  EXPECT_NEAR(cut, 480, 80);  // some rectangles are empty
}

TEST(Augment, StrengthsOfZeroChangeNothing) {
  const Augment mixing("mixup,cutmix", 3, {.shape = kShape, .mixup_alpha = 0, .cutmix_alpha = 0},
                       SomeNormalizer());
  for (int64_t sample = 0; sample < 50; ++sample) EXPECT_EQ(mixing.Mix(1, sample, 50).share, 0);

  const Augment augment("randaugment,colour-jitter", 3,
                        {.shape = kShape, .jitter = 0, .magnitude = 0}, SomeNormalizer());
  for (int64_t sample = 0; sample < 50; ++sample) {
    EXPECT_EQ(augment.Change(1, sample), SampleChange());
  }
}

TEST(Augment, WhereReadingCutsItAlsoFlips) {
  const SampleShape shape{8, 8, 3};
  const Normalizer normalizer = Normalizer::Identity(3);
  const Augment cut("random-resized-crop, flip", 3,
                    {.shape = shape, .cut = true, .least_area = 0.3}, normalizer);
  const Augment plain("flip", 3, {shape}, normalizer);
  EXPECT_FALSE(cut.active());
  int mirrored = 0;
  for (int sample = 0; sample < 200; ++sample) {
    const Framing framing = cut.Frame(2, sample);
    EXPECT_EQ(framing.least_area, 0.3);
    EXPECT_NE(framing.key, cut.Frame(3, sample).key);
    std::vector<float> picture(shape.size());
    picture[0] = 1;
    Apply(plain, 2, sample, picture);
    EXPECT_EQ(framing.mirrored, picture[0] == 0);
    mirrored += framing.mirrored;
  }
  EXPECT_NEAR(mirrored, 100, 40);
  EXPECT_TRUE(Holds(Refusal([&] { Augment("random-resized-crop", 3, {shape}, normalizer); }),
                    {"random-resized-crop works only with images:DIR"}));
  EXPECT_TRUE(Holds(Refusal([&] { Augment("flip,blur", 3, {shape}, normalizer); }),
                    {"there is no 'blur'", "erase"}));
}

}  // namespace
}  // namespace trireme
