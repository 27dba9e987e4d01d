#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/label.h"
#include "base/random.h"

namespace trireme::check {

// got and want differ by at most tolerance * max(1, largest |want|), and got is finite.
inline testing::AssertionResult Near(std::string_view what, std::span<const float> got,
                                     std::span<const double> want, double tolerance) {
  if (got.size() != want.size()) {
    return testing::AssertionFailure()
           << what << ": " << got.size() << " numbers instead of " << want.size();
  }
  double largest = 1;
  for (const double x : want) largest = std::max(largest, std::fabs(x));
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::fabs(got[i] - want[i]) <= tolerance * largest) continue;  // false for NaN
    return testing::AssertionFailure() << what << "[" << i << "] of " << got.size() << " is "
                                       << got[i] << " instead of " << want[i];
  }
  return testing::AssertionSuccess();
}

inline std::vector<float> RandomFloats(uint64_t key, size_t size) {
  const Random random(key);
  std::vector<float> numbers(size);
  for (size_t i = 0; i < size; ++i) numbers[i] = float(random.Normal(i));
  return numbers;
}

// Of a single output: numbers.
inline std::vector<int32_t> RandomLabels(uint64_t key, size_t size, int classes) {
  const Random random(key);
  std::vector<int32_t> labels(size);
  if (classes == 1) {
    for (size_t i = 0; i < size; ++i) labels[i] = LabelOfNumber(float(random.Normal(i)));
    return labels;
  }
  for (size_t i = 0; i < size; ++i) labels[i] = int32_t(random.Bits(i) % uint64_t(classes));
  return labels;
}

// Every third is of one class; others may have the same class twice.
inline std::vector<LabelMix> RandomMixes(uint64_t key, size_t size, int classes) {
  const Random random(key);
  std::vector<LabelMix> mixes(size);
  for (size_t i = 0; i < size; ++i) {
    if (i % 3 == 2) continue;
    mixes[i] = {int32_t(random.Bits(2 * i) % uint64_t(classes)),
                float(0.5 * random.Uniform(2 * i + 1))};
  }
  return mixes;
}

inline std::vector<double> Widen(std::span<const float> numbers) {
  return {numbers.begin(), numbers.end()};
}

}  // namespace trireme::check
