#include "strategy/work/random_work.h"

#include <numeric>
#include <utility>

#include "base/random.h"

namespace trireme {

Turn RandomWork::Next(Replica*, int64_t step, Work& work) {
  if (step >= plan_.steps) return Turn::kEnd;
  constexpr uint64_t kPurpose = 0xb5f;  // not the numbers that other draws by the seed use
  const Random random(Hash(seed_, kPurpose, uint64_t(step)));
  std::iota(parts_.begin(), parts_.end(), 0);
  for (size_t i = parts_.size() - 1; i > 0; --i) {  // Fisher, Yates
    std::swap(parts_[i], parts_[random.Bits(i) % (i + 1)]);
  }
  WorkOf(plan_, step, parts_[size_t(worker_)], int(parts_.size()), work);
  return Turn::kStep;
}

}  // namespace trireme
