#pragma once
#include <span>
#include <vector>

#include "base/assert.h"
#include "flat/device.h"
#include "flat/gradient.h"
#include "graph/program.h"

namespace trireme::cpu {

// Weight gradients of dense layers for one sample, kept as the two vectors whose product they
// are: of a large layer an update forms them faster than it reads them. Copies, because
// activations make room for others.
class Unwritten {
 public:
  // Room for what a shard of the program may leave unwritten.
  Unwritten(const Program& program, Device& device);

  void Clear() {
    outers_.clear();
    used_ = 0;
  }
  // Takes the gradient of weights[in][out] at `begin` of the summand; false: it has to be written.
  bool Take(size_t begin, std::span<const float> x, std::span<const float> dy) {
    if (!IsWorthIt(x.size(), dy.size())) return false;
    TRIREME_ASSERT(outers_.empty() || outers_.back().next() <= begin);  // as backward goes
    const float* down = Copy(x, 0);
    const float* across = Copy(dy, OuterProduct::kWrap);
    outers_.push_back({begin, down, across, x.size(), dy.size()});
    return true;
  }
  std::span<const OuterProduct> outers() const { return outers_; }

 private:
  // Smaller ones stay in the first cache.
  static bool IsWorthIt(size_t in, size_t out) {
    return out >= OuterProduct::kLeastColumns && in * out >= 4096;
  }
  const float* Copy(std::span<const float> from, size_t wrap);

  std::vector<OuterProduct> outers_;
  Buffer memory_;
  size_t used_ = 0;  // floats
};

}  // namespace trireme::cpu
