#include "data/augment.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/random.h"

namespace trireme {
namespace {

constexpr uint64_t kStream = 0x61756d656e74;  // other random numbers than the order's

}  // namespace

Augment::Augment(std::string_view kind, uint64_t seed, const SampleShape& shape,
                 const Normalizer& normalizer)
    : seed_(Hash(seed, kStream)), shape_(shape) {
  if (kind == "none") return;
  if (kind != "flip" && kind != "crop-flip") {
    throw UsageError("data.augment must be none, flip or crop-flip, got '{}'", kind);
  }
  if (shape.width == 1) {
    throw UsageError("data.augment = '{}' needs pictures, but a sample is {} x {} x {}", kind,
                     shape.height, shape.width, shape.channels);
  }
  flip_ = true;
  if (kind == "flip") return;
  margin_ = std::min({4, shape.height, shape.width});
  for (int x = 0; x < shape.width; ++x) {
    black_.insert(black_.end(), normalizer.shift().begin(), normalizer.shift().end());
  }
}

void Augment::Apply(int64_t epoch, int64_t sample, std::span<float> picture) const {
  const uint64_t draw = Hash(seed_, static_cast<uint64_t>(epoch), static_cast<uint64_t>(sample));
  if (flip_ && (draw & 1) != 0) Flip(picture);
  if (margin_ == 0) return;
  const auto places = static_cast<uint64_t>(2 * margin_ + 1);
  const int down = static_cast<int>((draw >> 8 & 0xffffff) * places >> 24) - margin_;
  const int right = static_cast<int>((draw >> 32 & 0xffffff) * places >> 24) - margin_;
  Shift(down, right, picture);
}

void Augment::Flip(std::span<float> picture) const {
  const int c = shape_.channels;
  const ptrdiff_t row = ptrdiff_t{shape_.width} * c;
  for (int y = 0; y < shape_.height; ++y) {
    float* left = picture.data() + y * row;
    float* right = left + row - c;
    for (; left < right; left += c, right -= c) std::swap_ranges(left, left + c, right);
  }
}

// In place: rows are visited from the side they move to, so none is overwritten before it moved.
void Augment::Shift(int down, int right, std::span<float> picture) const {
  const ptrdiff_t c = shape_.channels;
  const ptrdiff_t row = shape_.width * c;
  const ptrdiff_t kept = row - std::abs(right) * c;
  for (int i = 0; i < shape_.height; ++i) {
    const int y = down > 0 ? shape_.height - 1 - i : i;
    float* to = picture.data() + y * row;
    if (y - down < 0 || y - down >= shape_.height) {
      std::copy(black_.begin(), black_.end(), to);
      continue;
    }
    const float* from = to - down * row;
    if (right >= 0) {
      std::copy_backward(from, from + kept, to + row);
      std::copy_n(black_.begin(), row - kept, to);
    } else {
      std::copy(from + (row - kept), from + row, to);
      std::copy_n(black_.begin(), row - kept, to + kept);
    }
  }
}

}  // namespace trireme
