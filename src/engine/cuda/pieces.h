#pragma once
#include <cstddef>

#include "engine/cuda/add.h"
#include "engine/cuda/kernels.h"

// The scratch memory of products, and their operands in 16 bits.

namespace trireme::cuda {

constexpr size_t Aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

constexpr size_t NumberBytes(Element element) { return size_t(BytesOf(element)); }

// Takes a kernel's scratch memory piece by piece; or, of none, counts what would be taken.
class Pieces {
 public:
  Pieces() = default;
  explicit Pieces(const Shard& shard) : begin_(shard.scratch), bytes_(shard.scratch_bytes) {}

  Array Take(size_t size, Element element) {
    return {TakeBytes(size * NumberBytes(element)), element};
  }
  float* TakeFloats(size_t size) { return static_cast<float*>(Take(size, Element::kFloat).data); }
  void* TakeBytes(size_t bytes) {
    void* const piece = begin_ ? begin_ + taken_ : nullptr;
    taken_ += Aligned(bytes);
    return piece;
  }
  size_t taken() const { return taken_; }
  std::byte* rest() const { return begin_ + taken_; }
  size_t rest_bytes() const { return bytes_ - taken_; }

 private:
  std::byte* begin_ = nullptr;
  size_t bytes_ = 0, taken_ = 0;
};

// Whether a product cannot read or write a value where it lies.
inline bool IsConverted(const Value& value, const Context& context) {
  return value.element != context.element();
}
inline size_t ConvertedBytes(const Value& value, size_t samples, const Context& context) {
  return IsConverted(value, context)
             ? Aligned(samples * value.size() * NumberBytes(context.element()))
             : 0;
}

inline const void* Converted(const Value& value, const Shard& shard, Context& context,
                             Pieces& pieces) {
  if (!IsConverted(value, context)) return value.data;
  const size_t size = shard.count * value.size();
  const Array piece = pieces.Take(size, context.element());
  LaunchConvert(context.stream(), value.array(), piece, size);
  return piece.data;
}

// Where the copy of a product's weights, or of their gradient, lies (WeightCopyOf).
inline const void* CopyOf(const Call& call, const Shard& shard) {
  return static_cast<const std::byte*>(shard.copies.data) +
         call.copy * NumberBytes(shard.copies.element);
}

// Weights of a product as they lie in the state, or their copy in 16 bits.
inline const void* MatrixOf(const Call& call, const Shard& shard, const Context& context) {
  if (IsNarrow(context.element())) return CopyOf(call, shard);
  return shard.state + call.parameter(0);
}

}  // namespace trireme::cuda
