#pragma once
#include <cstdint>
#include <span>

#include "flat/device.h"

namespace trireme {

// The exponential moving average of a state's weights and running statistics over the steps of a
// run (Polyak, Juditsky 1992). Equal states give equal bits, on every rank. Not thread-safe.
class WeightAverage {
 public:
  // `decay`: the share of the average that a step keeps.
  WeightAverage(double decay, size_t floats, Device& device);

  // Where the run begins: its first weights, or the average of the life before.
  void Begin(Queue& queue, std::span<const float> average);
  // After step `step`, counted from 0 over the run: average += (1 - DecayAt(step)) (state -
  // average)
  void Add(Queue& queue, int64_t step, Slice state);
  // At most the decay; less in the first steps, which would otherwise hold on to the random weights
  // that the run began with.
  double DecayAt(int64_t step) const;

  Slice slice() const { return average_; }

 private:
  const double decay_;
  Buffer average_;
};

}  // namespace trireme
