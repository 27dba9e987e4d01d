#include "strategy/inner/sum_route.h"

#include <algorithm>
#include <array>

#include "strategy/step/tags.h"
#include "transport/collective/all_reduce.h"

namespace trireme {

size_t AgreeOnSegment(Group& group, const Replica& replica) {
  constexpr size_t kInPlace = 1 << 16, kStaged = 1 << 20;
  constexpr size_t kLine = 16;  // floats
  std::array<double, 1> staged = {replica.device.host_visible() ? 0.0 : 1.0};
  AllReduceSum(group, kTagSum, staged);
  const size_t most = (replica.layout.summand + kLine - 1) / kLine * kLine;
  return std::min(staged[0] > 0 ? kStaged : kInPlace, most);
}

}  // namespace trireme
