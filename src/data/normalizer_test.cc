#include "data/normalizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/error.h"
#include "data/memory_source.h"
#include "data/testing.h"
#include "hwy/targets.h"

namespace trireme {
namespace {

// The raw values of one channel, by Read.
std::vector<double> Column(const Source& source, int channel) {
  std::vector<double> column;
  std::vector<float> sample(source.shape().size());
  for (int64_t i = 0; i < source.size(); ++i) {
    source.Read(i, sample);
    for (size_t j = channel; j < sample.size(); j += source.shape().channels) {
      column.push_back(sample[j]);
    }
  }
  return column;
}

std::pair<double, double> MeanAndDeviation(const std::vector<double>& values) {
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / values.size();
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / values.size())};
}

std::unique_ptr<ByteSource> SomePictures(int height, int width, int channels, int count) {
  std::vector<uint8_t> bytes(16 + size_t{1} * height * width * channels * count);
  uint32_t state = 1;
  for (size_t i = 0; i < bytes.size(); ++i) {
    state = state * 1664525 + 1013904223;
    bytes[i] = static_cast<uint8_t>((state >> 24) / (1 + i % channels));
  }
  std::vector<int32_t> labels(count);
  return std::make_unique<ByteSource>(SampleShape{height, width, channels}, std::move(bytes), 16,
                                      std::move(labels));
}

TEST(FitNormalizer, StandardGivesMeanZeroAndDeviationOnePerChannel) {
  for (const int channels : {1, 3, 70}) {
    const auto source = SomePictures(5, 7, channels, 40);
    const Normalizer fitted = FitNormalizer(*source, "standard");
    for (int c = 0; c < channels; ++c) {
      const auto [mean, deviation] = MeanAndDeviation(Column(*source, c));
      EXPECT_NEAR(fitted.scale()[c], 1 / deviation, 1e-5 / deviation);
      EXPECT_NEAR(fitted.shift()[c], -mean / deviation, 1e-5);
    }
  }
}

TEST(FitNormalizer, HistogramsAgreeWithReadingEverySample) {
  const auto source = SomePictures(5, 7, 3, 40);
  const std::vector<int64_t> some = {3, 4, 17, 39};
  ChannelStatistics fast(3), slow(3);
  source->Measure(some, fast);
  source->Source::Measure(some, slow);
  for (int c = 0; c < 3; ++c) {
    EXPECT_EQ(fast.channel(c).count, slow.channel(c).count);
    EXPECT_NEAR(fast.channel(c).mean, slow.channel(c).mean, 1e-12);
    EXPECT_NEAR(fast.channel(c).squares, slow.channel(c).squares, 1e-9);
    EXPECT_EQ(fast.channel(c).min, slow.channel(c).min);
    EXPECT_EQ(fast.channel(c).max, slow.channel(c).max);
  }
}

TEST(FitNormalizer, MinmaxReachesFromZeroToOne) {
  const FloatSource source({1, 1, 2}, {-3, 10, 1, 30, -1, 20}, {0, 1, 0});
  const Normalizer fitted = FitNormalizer(source, "minmax");
  std::vector<float> out(6);
  std::vector<int32_t> labels(3);
  source.Gather(std::vector<int64_t>{0, 1, 2}, fitted, out.data(), labels.data());
  const std::vector<float> expected = {0, 0, 1, 1, 0.5, 0.5};
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(out[i], expected[i], 1e-6);
}

TEST(FitNormalizer, MeasuresOnlyTheSubset) {
  const auto whole = std::make_shared<FloatSource>(
      SampleShape{1, 1, 1}, std::vector<float>{1000, 2, 2000, 4}, std::vector<int32_t>(4));
  const Subset subset(whole, {1, 3});
  EXPECT_EQ(FitNormalizer(subset, "minmax").scale()[0], 0.5f);
}

TEST(FitNormalizer, ConstantColumnsBecomeZero) {
  const FloatSource source({1, 1, 2}, {0.1f, 1e-44f, 0.1f, 2e-44f, 0.1f, 1e-44f}, {0, 1, 0});
  for (const char* kind : {"standard", "minmax"}) {
    const Normalizer fitted = FitNormalizer(source, kind);
    const std::vector<float> row = {0.1f, 1e-44f};
    std::vector<float> out(2);
    fitted.Apply(row, out.data());
    EXPECT_NEAR(out[0], 0, 1e-7) << kind;
    EXPECT_NEAR(out[1], 0, 1e-7) << kind;
  }
}

TEST(FitNormalizer, KeepsDigitsOfColumnsFarFromZero) {
  const FloatSource source({1, 1, 1}, {16'000'000, 16'000'001, 16'000'002, 16'000'003},
                           {0, 0, 0, 0});
  EXPECT_NEAR(FitNormalizer(source, "standard").scale()[0], 1 / std::sqrt(1.25), 1e-6);
}

TEST(FitNormalizer, NoneChangesNothingAndOthersAreRefused) {
  const FloatSource source({1, 1, 1}, {5, 7}, {0, 1});
  EXPECT_EQ(FitNormalizer(source, "none").scale()[0], 1);
  EXPECT_EQ(FitNormalizer(source, "none").shift()[0], 0);
  EXPECT_TRUE(Holds(Refusal([&] { FitNormalizer(source, "whiten"); }),
                    {"data.normalize", "standard, minmax or none", "whiten"}));
}

TEST(Normalizer, ScalesEveryLengthLikeAPlainLoopOnEveryTarget) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    for (const int channels : {1, 3, 4, 64, 67}) {
      std::vector<float> scale(channels), shift(channels);
      for (int c = 0; c < channels; ++c) scale[c] = 0.3f + c, shift[c] = 1.7f - c;
      const Normalizer normalizer(scale, shift);
      for (const int pixels : {0, 1, 5, 16, 31, 67}) {
        const size_t n = size_t{1} * pixels * channels;
        std::vector<uint8_t> bytes(n);
        std::vector<float> floats(n), from_bytes(n), from_floats(n);
        for (size_t i = 0; i < n; ++i)
          bytes[i] = static_cast<uint8_t>(91 * i), floats[i] = 0.1f * i;
        normalizer.Apply(bytes, from_bytes.data());
        normalizer.Apply(floats, from_floats.data());
        for (size_t i = 0; i < n; ++i) {
          const size_t c = i % channels;
          ASSERT_EQ(from_bytes[i], bytes[i] * (1.0f / 255) * scale[c] + shift[c]);
          ASSERT_EQ(from_floats[i], floats[i] * scale[c] + shift[c]);
        }
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace
}  // namespace trireme
