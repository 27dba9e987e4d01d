#include "record/error_sums.h"

#include <cmath>

namespace trireme {

// Chan, Golub, LeVeque 1979.
void ErrorSums::Add(const ErrorSums& other) {
  if (other.samples == 0) return;
  const double own = double(samples), others = double(other.samples), all = own + others;
  const double distance = other.mean - mean;
  squares += other.squares;
  absolutes += other.absolutes;
  spread += other.spread + distance * distance * own * others / all;
  mean += distance * others / all;
  samples += other.samples;
}

double ErrorSums::Rmse() const { return samples ? std::sqrt(squares / double(samples)) : 0; }

double ErrorSums::Mae() const { return samples ? absolutes / double(samples) : 0; }

std::optional<double> ErrorSums::R2() const {
  if (!(spread > 0)) return std::nullopt;
  return 1 - squares / spread;
}

}  // namespace trireme
