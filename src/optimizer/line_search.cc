#include "optimizer/line_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace trireme {
namespace {

constexpr double kLeastGrowth = 2, kMostGrowth = 10;  // of the step while nothing is enclosed
constexpr double kMargin = 0.1;      // of an interval: no nearer to its ends, or it hardly shrinks
constexpr double kNarrowest = 1e-9;  // of its far end: what is left of an interval says nothing

// Where the cubic through values and slopes of two points is least; not finite: nowhere.
double LeastOfCubic(const LinePoint& a, const LinePoint& b) {
  const double d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.step - b.step);
  const double d2 = std::copysign(std::sqrt(d1 * d1 - a.slope * b.slope), b.step - a.step);
  return b.step - (b.step - a.step) * (b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2);
}

class Search {
 public:
  Search(const LineSearchOptions& options, const LinePoint& start,
         FunctionRef<LinePoint(double)> evaluate)
      : options_(options),
        start_(start),
        noise_(options.noise * std::fabs(start.value)),
        evaluate_(evaluate),
        lowest_(start) {}

  LineSearchResult Run(double first) {
    LinePoint before = start_;
    double step = first;
    while (left()) {
      const LinePoint at = Look(step);
      if (!Falls(at) || (before.step > 0 && Higher(at, before))) return Enclose(before, at);
      if (Flat(at)) return Found(at);
      if (at.slope >= 0) return Enclose(at, before);
      const double least = LeastOfCubic(before, at);
      step = std::isfinite(least) ? std::clamp(least, kLeastGrowth * at.step, kMostGrowth * at.step)
                                  : kMostGrowth * at.step;
      before = at;
    }
    return Lowest();
  }

 private:
  bool left() const { return used_ < options_.evaluations; }

  LinePoint Look(double step) {
    ++used_;
    last_ = evaluate_(step);
    if (Falls(last_) && last_.value < lowest_.value) lowest_ = last_;
    return last_;
  }

  // The first Wolfe condition. Written so that what is not a number does not fall.
  bool Falls(const LinePoint& at) const {
    return at.value <= start_.value + options_.decrease * at.step * start_.slope + noise_;
  }
  // Where values are equal but for noise, slopes decide.
  bool Higher(const LinePoint& at, const LinePoint& than) const {
    return at.value > than.value + noise_;
  }
  // The second.
  bool Flat(const LinePoint& at) const {
    return std::fabs(at.slope) <= -options_.curvature * start_.slope;
  }

  // Between the two is a point with both conditions; `low` is the lower one and falls.
  LineSearchResult Enclose(LinePoint low, LinePoint high) {
    while (left()) {
      const double width = high.step - low.step;
      if (std::fabs(width) <= kNarrowest * std::max(low.step, high.step)) break;
      double step = LeastOfCubic(low, high);
      const double share = (step - low.step) / width;
      if (!std::isfinite(share)) {
        step = low.step + width / 2;
      } else {
        step = low.step + std::clamp(share, kMargin, 1 - kMargin) * width;
      }
      const LinePoint at = Look(step);
      if (!Falls(at) || Higher(at, low)) {
        high = at;
        continue;
      }
      if (Flat(at)) return Found(at);
      if (at.slope * width >= 0) high = low;
      low = at;
    }
    return Lowest();
  }

  LineSearchResult Found(const LinePoint& at) const { return {at, used_, true, true}; }
  LineSearchResult Lowest() const {
    return {lowest_, used_, used_ > 0 && lowest_.step == last_.step,
            lowest_.step > 0 && Flat(lowest_)};
  }

  const LineSearchOptions options_;
  const LinePoint start_;
  const double noise_;
  const FunctionRef<LinePoint(double)> evaluate_;
  LinePoint last_, lowest_;
  int used_ = 0;
};

}  // namespace

LineSearchResult SearchLine(const LineSearchOptions& options, const LinePoint& start, double first,
                            FunctionRef<LinePoint(double step)> evaluate) {
  return Search(options, start, evaluate).Run(first);
}

}  // namespace trireme
