#pragma once
#include "base/function_ref.h"

namespace trireme {

// A point of a line: how far along it, and what the function does there.
struct LinePoint {
  double step = 0;
  double value = 0;
  double slope = 0;  // of the function along the line
};

struct LineSearchOptions {
  double decrease = 1e-4;  // of what the first slope promises, at least
  double curvature = 0.9;  // of the first slope may remain, at most
  int evaluations = 20;    // at most
  double noise = 1e-15;    // relative: by what two values may differ for no reason
};

struct LineSearchResult {
  LinePoint at;         // the lowest that was found, or the start
  int evaluations = 0;  // that it took
  bool last = false;    // `at` was evaluated last
  bool wolfe = false;   // both conditions hold there
};

// Looks along a line for a point with the strong Wolfe conditions: the value has fallen enough, and
// the slope is small enough, whichever its sign (Nocedal, Wright 2006, algorithms 3.5 and 3.6, with
// cubic interpolation). `start` is the point at step 0, where the slope is negative; `first` is
// tried first. A value that is not finite is higher than any other.
LineSearchResult SearchLine(const LineSearchOptions& options, const LinePoint& start, double first,
                            FunctionRef<LinePoint(double step)> evaluate);

}  // namespace trireme
