#include "optimizer/line_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace trireme {
namespace {

struct Line {
  std::function<double(double)> value, slope;
  int looks = 0;
  double last = -1;
  LinePoint At(double step) const { return {step, value(step), slope(step)}; }
  LineSearchResult Search(double first, const LineSearchOptions& options = {}) {
    return SearchLine(options, At(0), first, [&](double step) {
      ++looks;
      last = step;
      return At(step);
    });
  }
};

// The first three of Moré and Thuente (1994).
Line Rational() {
  constexpr double kB = 2;
  return {[](double a) { return -a / (a * a + kB); },
          [](double a) { return (a * a - kB) / ((a * a + kB) * (a * a + kB)); }};
}
Line Power() {
  constexpr double kB = 0.004;
  return {[](double a) { return std::pow(a + kB, 5) - 2 * std::pow(a + kB, 4); },
          [](double a) { return 5 * std::pow(a + kB, 4) - 8 * std::pow(a + kB, 3); }};
}
Line Parabola() {
  return {[](double a) { return (a - 3) * (a - 3); }, [](double a) { return 2 * (a - 3); }};
}

void ExpectWolfe(Line line, double first, const LineSearchOptions& options) {
  const LineSearchResult found = line.Search(first, options);
  const LinePoint start = line.At(0);
  EXPECT_TRUE(found.wolfe) << first;
  EXPECT_TRUE(found.last);
  EXPECT_EQ(found.at.step, line.last) << "what was evaluated last is what was found";
  EXPECT_EQ(found.evaluations, line.looks);
  EXPECT_LE(found.evaluations, options.evaluations);
  EXPECT_LE(found.at.value, start.value + options.decrease * found.at.step * start.slope);
  EXPECT_LE(std::fabs(found.at.slope), -options.curvature * start.slope);
}

TEST(LineSearchTest, FindsTheWolfeConditionsFromAnyFirstStep) {
  for (double first : {1e-3, 0.1, 1.0, 10.0, 1e3}) {
    for (double curvature : {0.9, 0.1}) {
      const LineSearchOptions options{.curvature = curvature, .evaluations = 30};
      ExpectWolfe(Rational(), first, options);
      ExpectWolfe(Power(), first, options);
      ExpectWolfe(Parabola(), first, options);
    }
  }
}

TEST(LineSearchTest, ACubicStepHitsTheLeastOfAParabola) {
  Line line = Parabola();
  const LineSearchResult found = line.Search(10, {.curvature = 1e-6});
  EXPECT_NEAR(found.at.step, 3, 1e-6);
  EXPECT_EQ(found.evaluations, 2);
}

TEST(LineSearchTest, ComesBackFromWhereTheFunctionIsNotFinite) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  Line line{[](double a) { return a < 2 ? (a - 1) * (a - 1) : kNan; },
            [](double a) { return a < 2 ? 2 * (a - 1) : kNan; }};
  const LineSearchResult found = line.Search(64);
  EXPECT_TRUE(found.wolfe);
  EXPECT_LT(found.at.step, 2);
}

TEST(LineSearchTest, ARisingLineGivesTheStartBack) {
  // Its slope at 0 is a lie: nothing lower is anywhere.
  Line line{[](double a) { return a; }, [](double a) { return a > 0 ? 1.0 : -1.0; }};
  const LineSearchResult found = line.Search(1);
  EXPECT_EQ(found.at.step, 0);
  EXPECT_FALSE(found.wolfe);
  EXPECT_LE(found.evaluations, LineSearchOptions{}.evaluations);
}

TEST(LineSearchTest, WithoutEnoughEvaluationsTheLowestCounts) {
  Line line = Parabola();
  const LineSearchResult found = line.Search(0.01, {.curvature = 0.01, .evaluations = 2});
  EXPECT_EQ(found.evaluations, 2);
  EXPECT_GT(found.at.step, 0.01);
  EXPECT_LT(found.at.value, 9);
}

// Values that are rounded to floats: the last steps are below what they resolve.
TEST(LineSearchTest, NoiseDoesNotHideAStep) {
  const auto exact = [](double a) { return 1e3 + 1e-6 * (a - 1) * (a - 1); };
  Line line{[&](double a) { return double(float(exact(a))) + (a > 0 ? 1e-5 : 0); },
            [](double a) { return 2e-6 * (a - 1); }};
  EXPECT_EQ(line.Search(0.5).wolfe, false);
  EXPECT_TRUE(line.Search(0.5, {.noise = 1e-7}).wolfe);
}

}  // namespace
}  // namespace trireme
