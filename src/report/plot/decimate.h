#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace trireme {

// Which points of a long curve are drawn: of every column of the picture the first, the last, the
// lowest and the highest, so that it looks the same and no spike is lost. `places` are 0..1 along
// the axis, ascending; a value that is not finite is a gap and keeps one point. Indices ascend; at
// most 5 * columns of them, all where there are no more points than that.
std::vector<size_t> DecimateCurve(std::span<const double> places, std::span<const double> values,
                                  size_t columns);

// At most `most` indices of `count`, evenly apart, the first and the last among them.
std::vector<size_t> DecimateRows(size_t count, size_t most);

}  // namespace trireme
