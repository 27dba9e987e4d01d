#pragma once
#include <span>
#include <vector>

namespace trireme {

// The middle and the ends of some measurements.
struct Spread {
  double median = 0, low = 0, high = 0;

  // Half the distance of the ends, as a share of the middle.
  double share() const { return median != 0 ? (high - low) / 2 / median : 0; }
};

Spread SpreadOf(std::vector<double> values);  // of at least one

// The mean, and the standard deviation of what the values are a sample of (n - 1); 0 of one value.
struct Moments {
  double mean = 0, deviation = 0;
};
Moments MomentsOf(std::span<const double> values);  // of at least one

}  // namespace trireme
