#include "study/statistics.h"

#include <algorithm>

#include "base/assert.h"

namespace trireme {

Spread SpreadOf(std::vector<double> values) {
  TRIREME_ASSERT(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return {(values[(n - 1) / 2] + values[n / 2]) / 2, values.front(), values.back()};
}

}  // namespace trireme
