#pragma once
#include <cstdint>
#include <optional>

namespace trireme {

// How far predicted numbers are from the true ones, in the unit of these: sums over samples, so
// that those of several parts add up to those of the whole.
struct ErrorSums {
  int64_t samples = 0;
  double squares = 0, absolutes = 0;  // of prediction - truth
  double mean = 0;                    // of the true numbers
  double spread = 0;                  // the sum of their squared distances from it

  void Add(const ErrorSums& other);
  double Rmse() const;  // the root of the mean squared error
  double Mae() const;   // the mean absolute error
  // 1 - squares / spread: 1 is exact, 0 as good as the mean. None where all numbers are equal.
  std::optional<double> R2() const;
};

}  // namespace trireme
