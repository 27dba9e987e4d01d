#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/options.h"
#include "data/source.h"

namespace trireme {

// data.source of a run whose samples a program has in its memory.
inline constexpr char kGivenSource[] = "memory";

// A part of them. All are borrowed; labels are copied when they are opened.
struct GivenPart {
  std::span<const float> values;    // of one sample after the other
  std::span<const uint8_t> bytes;   // or these, which count as value / 255
  std::span<const int32_t> labels;  // the class of each sample
  std::span<const float> numbers;   // or the number to predict of each

  bool empty() const {
    return values.empty() && bytes.empty() && labels.empty() && numbers.empty();
  }
};

struct GivenSamples {
  SampleShape shape;
  GivenPart train, validation, test;  // only the first must be there
  std::vector<std::string> classes;   // empty: named by their numbers
};

// As a source of the list opens (data/sources.h), to be divided by DivideData. UsageError where the
// parts contradict each other, a label has no class or a value is not finite.
DataSet OpenGiven(const GivenSamples& given, const DataOptions& options);

// Samples to classify. `what` says in messages what they are.
std::unique_ptr<Source> OpenGivenValues(const SampleShape& shape, const GivenPart& part,
                                        const std::string& what);

}  // namespace trireme
