#include "study/scaling_law.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace trireme {
namespace {

TEST(Clock, ReadsAndWritesTimes) {
  EXPECT_EQ(ParseClock("32:06"), 1926);
  EXPECT_EQ(ParseClock("2:08:24"), 7704);
  EXPECT_EQ(ParseClock("45"), 45);
  for (const char* wrong : {"", "a", "1:60", "1:2:3:4", "-1", "1:-2", "1:"}) {
    EXPECT_FALSE(ParseClock(wrong)) << wrong;
  }
  EXPECT_EQ(FormatClock(1926), "32:06");
  EXPECT_EQ(FormatClock(7704.4), "2:08:24");
  EXPECT_EQ(FormatClock(59.7), "1:00");
}

TEST(FitScaling, FindsTheLawThatMadeTheTimes) {
  const ScalingLaw law{.serial = 20, .parallel = 300, .exchange = 50};
  const std::vector<double> n = {1, 2, 4, 8};
  std::vector<double> seconds;
  for (const double x : n) seconds.push_back(law.At(x));
  const ScalingFit fit = FitScaling(n, seconds, true, 0);
  EXPECT_NEAR(fit.law.serial, 20, 1e-6);
  EXPECT_NEAR(fit.law.parallel, 300, 1e-6);
  EXPECT_NEAR(fit.law.exchange, 50, 1e-6);
  EXPECT_EQ(fit.noise, kLeastNoise);
  // No term becomes negative, whatever the times.
  const std::vector<double> odd = {100, 40, 15, 5};
  const ScalingFit super = FitScaling(n, odd, true, 0);
  EXPECT_GE(std::min({super.law.serial, super.law.parallel, super.law.exchange}), 0);
}

PublishedForecast::Point At(const PublishedForecast& forecast, double n) {
  for (const auto& point : forecast.points) {
    if (point.n == n) return point;
  }
  ADD_FAILURE() << "no point " << n;
  return {};
}

TEST(ForecastPublished, EightAndSixteenNodesFromOneTwoAndFour) {
  const std::vector<double> known = {1, 2, 4};
  const PublishedForecast forecast = ForecastPublished(FindPublished("ddp-nodes"), known, 16);
  for (const double n : {8.0, 16.0}) {
    const auto point = At(forecast, n);
    EXPECT_NEAR(point.predicted.seconds / point.published, 1, 0.15);
    EXPECT_FALSE(point.fitted);
    EXPECT_LE(point.predicted.low, point.published);
    EXPECT_GE(point.predicted.high, point.published);
  }
}

TEST(ForecastPublished, EightAndSixteenLoadersLieInANarrowInterval) {
  const std::vector<double> known = {1, 2, 4};
  const PublishedForecast forecast = ForecastPublished(FindPublished("ddp-loaders"), known, 16);
  for (const double n : {8.0, 16.0}) {
    const auto point = At(forecast, n);
    EXPECT_LE(point.predicted.low, point.published);
    EXPECT_GE(point.predicted.high, point.published);
    EXPECT_LE(point.predicted.high / point.predicted.low, 1.5);
  }
  // Without a floor more is claimed than holds of the loaders alone, and the interval says so.
  const PublishedForecast bare = ForecastPublished(FindPublished("ddp-loaders"), known, 16, 0);
  EXPECT_LT(At(bare, 16).predicted.low, At(forecast, 16).predicted.low);
  EXPECT_GE(At(bare, 16).predicted.high, At(bare, 16).published);
}

TEST(ForecastPublished, RefusesWhatTheTableDoesNotHave) {
  const std::vector<double> one = {1}, none = {1, 5}, two = {1, 2};
  EXPECT_THROW(ForecastPublished(FindPublished("ddp-nodes"), one, 16), UsageError);
  EXPECT_THROW(ForecastPublished(FindPublished("ddp-nodes"), none, 16), UsageError);
  EXPECT_THROW(ForecastPublished(FindPublished("ddp-precision"), two, 16), UsageError);
  EXPECT_THROW(FindPublished("ddp-node"), UsageError);
}

}  // namespace
}  // namespace trireme
