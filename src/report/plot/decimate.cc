#include "report/plot/decimate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace trireme {
namespace {

size_t ColumnOf(double place, size_t columns) {
  if (!(place > 0)) return 0;  // not a number, too
  return std::min(columns - 1, size_t(std::min(place, 1.0) * double(columns)));
}

// Of points [begin, end), which share a column.
void KeepColumn(std::span<const double> values, size_t begin, size_t end,
                std::vector<size_t>& kept) {
  size_t lowest = end, highest = end, gap = end;
  for (size_t i = begin; i < end; ++i) {
    if (!std::isfinite(values[i])) {
      gap = i;
      continue;
    }
    if (lowest == end || values[i] < values[lowest]) lowest = i;
    if (highest == end || values[i] > values[highest]) highest = i;
  }
  std::vector<size_t> some = {begin, end - 1};
  for (const size_t i : {lowest, highest, gap}) {
    if (i != end) some.push_back(i);
  }
  std::sort(some.begin(), some.end());
  some.erase(std::unique(some.begin(), some.end()), some.end());
  kept.insert(kept.end(), some.begin(), some.end());
}

}  // namespace

std::vector<size_t> DecimateCurve(std::span<const double> places, std::span<const double> values,
                                  size_t columns) {
  columns = std::max<size_t>(columns, 1);
  std::vector<size_t> kept;
  if (values.size() <= 5 * columns) {
    kept.resize(values.size());
    std::iota(kept.begin(), kept.end(), size_t{0});
    return kept;
  }
  for (size_t begin = 0; begin < values.size();) {
    const size_t column = ColumnOf(places[begin], columns);
    size_t end = begin + 1;
    while (end < values.size() && ColumnOf(places[end], columns) <= column) ++end;
    KeepColumn(values, begin, end, kept);
    begin = end;
  }
  return kept;
}

std::vector<size_t> DecimateRows(size_t count, size_t most) {
  std::vector<size_t> kept;
  most = std::max<size_t>(most, 2);
  if (count <= most) {
    kept.resize(count);
    std::iota(kept.begin(), kept.end(), size_t{0});
    return kept;
  }
  for (size_t i = 0; i < most; ++i) {
    kept.push_back(size_t(std::llround(double(i) * double(count - 1) / double(most - 1))));
  }
  return kept;
}

}  // namespace trireme
