#pragma once
#include <bit>
#include <cstdint>

namespace trireme {

// Labels are int32 on their whole way, from the source to the loss. They are the numbers of classes
// or, for a network with a single output, numbers to predict: then they are the bits of a float.
inline int32_t LabelOfNumber(float number) { return std::bit_cast<int32_t>(number); }
inline float NumberOfLabel(int32_t label) { return std::bit_cast<float>(label); }

// Of a sample that is mixed from two of different classes: the loss is that against the second
// class by its share, and that against the label by the rest. The label is the class of the larger
// share.
struct LabelMix {
  int32_t other = 0;
  float share = 0;  // of the second, 0 to 0.5

  bool operator==(const LabelMix&) const = default;
};

}  // namespace trireme
