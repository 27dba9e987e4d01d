#include "image/filter.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace trireme {

void MakeFilter(double begin, double length, int size, bool mirrored, Filter& filter) {
  TRIREME_ASSERT(begin >= 0 && length > 0 && size > 0);
  const double scale = length / size;
  const double width = std::max(scale, 1.0);  // half the triangle's base
  const int low = static_cast<int>(begin);
  const int high = static_cast<int>(std::ceil(begin + length));
  // No more than the line has, so that a tap of weight 0 is also inside.
  filter.taps = std::min(high - low, static_cast<int>(std::ceil(2 * width)) + 1);
  filter.first.resize(size);
  filter.weights.assign(static_cast<size_t>(size) * filter.taps, 0.0f);
  std::vector<double> weights(filter.taps);
  for (int i = 0; i < size; ++i) {
    const double centre = begin + (i + 0.5) * scale;
    int first = std::max(low, static_cast<int>(centre - width + 0.5));
    first = std::min(first, high - filter.taps);
    double sum = 0;
    for (int t = 0; t < filter.taps; ++t) {
      weights[t] = std::max(0.0, 1 - std::abs(first + t + 0.5 - centre) / width);
      sum += weights[t];
    }
    const int place = mirrored ? size - 1 - i : i;
    filter.first[place] = first;
    for (int t = 0; t < filter.taps; ++t) {
      filter.weights[static_cast<size_t>(place) * filter.taps + t] =
          static_cast<float>(weights[t] / sum);
    }
  }
}

}  // namespace trireme
