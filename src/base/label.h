#pragma once
#include <bit>
#include <cstdint>

namespace trireme {

// Labels are int32 on their whole way, from the source to the loss. They are the numbers of classes
// or, for a network with a single output, numbers to predict: then they are the bits of a float.
inline int32_t LabelOfNumber(float number) { return std::bit_cast<int32_t>(number); }
inline float NumberOfLabel(int32_t label) { return std::bit_cast<float>(label); }

}  // namespace trireme
