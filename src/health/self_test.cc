#include "health/self_test.h"

#include <cmath>

#include "base/assert.h"
#include "base/error.h"

namespace trireme {

GradientMatch CompareGradients(std::span<const float> together, std::span<const float> alone) {
  TRIREME_ASSERT(together.size() == alone.size());
  double cross = 0, square = 0, difference = 0;
  for (size_t i = 0; i < alone.size(); ++i) {
    const double a = alone[i], t = together[i];
    cross += a * t;
    square += a * a;
    difference += (a - t) * (a - t);
  }
  if (square == 0)
    return {.difference = std::sqrt(difference), .factor = difference == 0 ? 1. : 0.};
  return {.difference = std::sqrt(difference / square), .factor = cross / square};
}

void JudgeGradients(const GradientMatch& match, int ranks, int shards, double tolerance) {
  if (match.difference <= tolerance) return;  // false for NaN
  // Is it the same gradient, scaled?
  const double rest = std::sqrt(
      std::max(0., match.difference * match.difference - (match.factor - 1) * (match.factor - 1)));
  if (rest <= 10 * tolerance && std::isfinite(match.factor)) {
    throw Error(
        "self-test: the gradient of {} ranks together is {:.6g} times the one that rank 0 computes "
        "alone; the sum over {} shards must equal it",
        ranks, match.factor, shards);
  }
  throw Error(
      "self-test: the gradient of {} ranks together differs from the one that rank 0 computes "
      "alone by {:.3g} (relative; allowed {:g}); the ranks compute or add up something else",
      ranks, match.difference, tolerance);
}

}  // namespace trireme
