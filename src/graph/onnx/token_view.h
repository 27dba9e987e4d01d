#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace trireme {

// The values of a layer in another order, as transformers have them between their layers: tokens
// for each sample, heads apart from each other, queries without keys.

// `extent` places along one dimension of the value, `stride` apart.
struct OnnxFactor {
  enum class Of { kSamples, kTokens, kChannels };
  Of of = Of::kSamples;
  int64_t extent = 0;  // of samples: 0 where their number is free
  int64_t stride = 1;
  bool operator==(const OnnxFactor&) const = default;
};
// From the slowest to the fastest; none: an extent of 1.
using OnnxAxis = std::vector<OnnxFactor>;

struct OnnxNumber;

struct TokenView {
  Shape shape;                 // of the layer's value
  std::vector<OnnxAxis> axes;  // samples included
  int64_t first_channel = 0;   // where channels are a part of all

  // The axes [samples][channels][height][width], or [samples][channels] of a single pixel.
  static TokenView OfImage(const Shape& shape, int64_t samples);
  static TokenView OfTokens(const Shape& shape, int64_t samples);  // [samples][tokens][channels]

  int64_t tokens() const { return int64_t{shape.height} * shape.width; }

  bool IsSamples(size_t axis) const;
  bool IsTokens(size_t axis) const;    // all tokens, in order
  bool IsChannels(size_t axis) const;  // all channels, in order
  bool IsPlain() const;                // the axes of OfTokens
  bool IsWhole() const;                // everything is there, in whatever order
  OnnxNumber Extent(size_t axis) const;

  // Each returns whether it can be said so.
  bool Reshape(const std::vector<OnnxNumber>& wanted, bool zero_copies);
  bool Transpose(const std::vector<int64_t>& order);
  // One place of an axis, which stays with an extent of 1, or several neighbours.
  bool Take(size_t axis, int64_t first, int64_t count);

  // The same arrangement of another layer's value, whose channels stand in for this one's.
  TokenView Of(const Shape& other) const;
};

}  // namespace trireme
