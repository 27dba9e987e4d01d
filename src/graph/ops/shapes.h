#pragma once
#include <span>

#include "base/error.h"
#include "graph/op.h"

namespace trireme {

// Shape rules that several operations share.

// One output like the first input, no parameters.
inline Signature KeepsShape(std::span<const ValueSpec> inputs, const Attributes&) {
  return {.outputs = {inputs[0]}};
}

inline void RequireFlat(const Shape& shape) {
  if (shape.height != 1 || shape.width != 1) {
    throw Error("needs a flat input, got {}: put a flatten before it", ToText(shape));
  }
}

// What a window that slides over the input leaves, with `channels` channels.
inline Shape WindowedShape(const Shape& in, const Attributes& a, int channels) {
  if (a.kernel < 1 || a.stride < 1 || a.padding < 0 || a.padding >= a.kernel) {
    throw Error("needs kernel >= 1, stride >= 1 and 0 <= padding < kernel, got {}, {}, {}",
                a.kernel, a.stride, a.padding);
  }
  if (in.height + 2 * a.padding < a.kernel || in.width + 2 * a.padding < a.kernel) {
    throw Error("a {0}x{0} window with padding {1} does not fit into {2}", a.kernel, a.padding,
                ToText(in));
  }
  return {.height = (in.height + 2 * a.padding - a.kernel) / a.stride + 1,
          .width = (in.width + 2 * a.padding - a.kernel) / a.stride + 1,
          .channels = channels};
}

}  // namespace trireme
