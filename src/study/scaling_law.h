#pragma once
#include <array>
#include <span>
#include <string>
#include <vector>

#include "study/published.h"

namespace trireme {

// How a time T depends on the number n of those who share the work, for tables of times of which
// nothing else is known:
//
//   T(n) = max(floor, serial + parallel / n + exchange (n - 1) / n^2)
//
// serial: what nobody shares. parallel: what is shared evenly. exchange: gradients that are summed
// over a ring, 2 (n - 1) / n of their bytes in each of a number of steps that falls as 1 / n; only
// where the n have replicas of their own. floor: what something else than these n takes anyway.
struct ScalingLaw {
  static constexpr int kTerms = 3;
  double serial = 0, parallel = 0, exchange = 0;
  double floor = 0;
  double At(double n) const;
};

struct ScalingFit {
  ScalingLaw law;
  double noise = 0;    // relative deviation of one measurement
  double largest = 0;  // n of the points it is fitted to
  std::array<std::array<double, ScalingLaw::kTerms>, ScalingLaw::kTerms> covariance = {};
};

// Terms that are not negative, with the least squares of relative errors. The noise is what the fit
// leaves, by its degrees of freedom, and at least kLeastNoise.
constexpr double kLeastNoise = 0.05;
ScalingFit FitScaling(std::span<const double> n, std::span<const double> seconds, bool exchange,
                      double floor);

// With the interval in which a measurement should lie in nine of ten cases, if the law holds and
// errors are normal; nothing lies below the floor. As no term is negative, n T(n) does not fall
// and, from n = 2 on, T(n) does not grow: beyond the points that were fitted the interval keeps to
// that.
struct Predicted {
  double seconds = 0, low = 0, high = 0;
};
Predicted Predict(const ScalingFit& fit, double n);

// A published table, some of its points as what is known, the rest as what is asked for.
struct PublishedForecast {
  const PublishedTable* table = nullptr;
  ScalingFit fit;
  std::vector<double> fitted;  // their n
  struct Point {
    double n = 0;
    Predicted predicted;
    double published = 0;  // 0: none
    bool fitted = false;
  };
  std::vector<Point> points;
  std::string assumes;  // in words
};

// `floor` < 0: as the kind of table has it. For loaders that is the shortest time that the same
// node reaches however many devices it has (ddp-gpus).
PublishedForecast ForecastPublished(const PublishedTable& table, std::span<const double> fit,
                                    double to, double floor = -1);

}  // namespace trireme
