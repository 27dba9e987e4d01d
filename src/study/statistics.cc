#include "study/statistics.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace trireme {

Spread SpreadOf(std::vector<double> values) {
  TRIREME_ASSERT(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return {(values[(n - 1) / 2] + values[n / 2]) / 2, values.front(), values.back()};
}

Moments MomentsOf(std::span<const double> values) {
  TRIREME_ASSERT(!values.empty());
  const double n = double(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / n;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, values.size() > 1 ? std::sqrt(squares / (n - 1)) : 0};
}

}  // namespace trireme
