#include "report/plot/decimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace trireme {
namespace {

struct Long {
  std::vector<double> places, values;
};

Long MakeLong(size_t points) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Long curve;
  for (size_t i = 0; i < points; ++i) {
    curve.places.push_back(double(i) / double(points - 1));
    curve.values.push_back(uniform(random));
  }
  return curve;
}

TEST(Decimate, AShortCurveStaysWhole) {
  const Long curve = MakeLong(500);
  EXPECT_EQ(DecimateCurve(curve.places, curve.values, 100).size(), 500u);
}

TEST(Decimate, KeepsEndsAndExtremesOfEveryColumn) {
  Long curve = MakeLong(100000);
  curve.values[77777] = 50;
  curve.values[12345] = -50;
  const auto kept = DecimateCurve(curve.places, curve.values, 200);
  EXPECT_LE(kept.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
  EXPECT_EQ(std::adjacent_find(kept.begin(), kept.end()), kept.end());
  for (const size_t i : {size_t{0}, size_t{99999}, size_t{77777}, size_t{12345}}) {
    EXPECT_TRUE(std::binary_search(kept.begin(), kept.end(), i)) << i;
  }
}

TEST(Decimate, AGapStaysAGap) {
  Long curve = MakeLong(10000);
  curve.values[5000] = NAN;
  const auto kept = DecimateCurve(curve.places, curve.values, 50);
  EXPECT_TRUE(std::binary_search(kept.begin(), kept.end(), size_t{5000}));
}

TEST(Decimate, PlacesThatMakeNoSenseDoNoHarm) {
  const std::vector<double> values(1000, 1.0);
  for (const double place : {double(NAN), -5.0, 1e300, double(INFINITY)}) {
    const std::vector<double> places(1000, place);
    EXPECT_LE(DecimateCurve(places, values, 10).size(), 50u);
  }
}

TEST(Decimate, RowsAreEvenlyApart) {
  EXPECT_EQ(DecimateRows(3, 10), (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(DecimateRows(101, 3), (std::vector<size_t>{0, 50, 100}));
  EXPECT_TRUE(DecimateRows(0, 3).empty());
}

}  // namespace
}  // namespace trireme
