#include "data/order.h"

#include <bit>

#include "base/assert.h"

namespace trireme {

Order::Order(uint64_t seed, int64_t size, bool shuffle)
    : seed_(seed), size_(size), shuffle_(shuffle) {
  TRIREME_ASSERT(size >= 0 && size < (int64_t{1} << 60));
  if (size == 0) return;
  const int bits = std::bit_width(static_cast<uint64_t>(size - 1));
  right_bits_ = (bits + 1) / 2;
  right_mask_ = (uint64_t{1} << right_bits_) - 1;
  lefts_ = (static_cast<uint64_t>(size) + right_mask_) >> right_bits_;
  if (size < 64) rounds_ = 20;
}

void Order::Fill(int64_t epoch, int64_t begin, std::span<int64_t> samples) const {
  const uint64_t key = Key(epoch);
  for (int64_t& sample : samples) sample = shuffle_ ? Permute(key, begin++) : begin++;
}

}  // namespace trireme
