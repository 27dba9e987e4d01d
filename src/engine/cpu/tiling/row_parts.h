#pragma once
#include <algorithm>
#include <cstddef>

#include "base/team.h"

namespace trireme::cpu {

// A weight gradient (wgrad) is a sum over rows (pixels). Where they are many and the sums few,
// threads that divide the sums would all read and pack the same rows; instead rows are cut into
// parts that have sums of their own, which are added in their order. How many depends on the sizes
// alone, so the number of threads does not change a bit.
class RowParts {
 public:
  RowParts(size_t rows, size_t sums, size_t least_rows = 1024)
      : rows_(rows),
        sums_(sums),
        count_(sums <= kFewSums ? std::clamp<size_t>(rows / least_rows, 1, kMostParts) : 1) {}

  size_t count() const { return count_; }
  size_t begin(size_t part) const { return rows_ * part / count_; }
  size_t stride() const { return (sums_ + 15) / 16 * 16; }              // from part to part
  size_t floats() const { return count_ > 1 ? count_ * stride() : 0; }  // of all parts

  // to[.] (+)= the sums of all parts.
  void Add(const float* parts, float* to, bool add, Team& team) const {
    ParallelFor(team, sums_, kGrain, [&](size_t begin, size_t end) {
      if (!add) std::copy(parts + begin, parts + end, to + begin);
      for (size_t part = add ? 0 : 1; part < count_; ++part) {
        const float* from = parts + part * stride();
        for (size_t i = begin; i < end; ++i) to[i] += from[i];
      }
    });
  }

 private:
  static constexpr size_t kFewSums = 64 * 1024;  // the second cache holds them beside the operands
  static constexpr size_t kMostParts = 32;
  static constexpr size_t kGrain = 2048;

  size_t rows_, sums_, count_;
};

}  // namespace trireme::cpu
