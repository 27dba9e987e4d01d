#include "optimizer/weight_average.h"

#include <algorithm>

#include "base/assert.h"
#include "flat/arithmetic.h"
#include "flat/staging.h"

namespace trireme {

WeightAverage::WeightAverage(double decay, size_t floats, Device& device)
    : decay_(decay), average_(device, floats) {
  TRIREME_ASSERT(decay > 0 && decay < 1);
}

void WeightAverage::Begin(Queue& queue, std::span<const float> average) {
  flat::PutNow(queue, average, average_);
}

void WeightAverage::Add(Queue& queue, int64_t step, Slice state) {
  const double kept = DecayAt(step);
  flat::Blend(queue, float(1 - kept), state, float(kept), average_);
}

double WeightAverage::DecayAt(int64_t step) const {
  return std::min(decay_, double(1 + step) / double(10 + step));
}

}  // namespace trireme
