#include "health/weight_check.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/error.h"
#include "model/model_file.h"
#include "strategy/step/tags.h"
#include "transport/collective/broadcast.h"

namespace trireme {

// Four lanes: a multiplication depends on the one before in its lane.
uint64_t HashOfValues(std::span<const float> values) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;
  uint64_t lanes[4] = {1, 2, 3, 4};
  const auto mix = [](uint64_t h, uint64_t word) {
    h = (h ^ word) * kOdd;
    return h ^ (h >> 29);
  };
  size_t i = 0;
  for (; i + 8 <= values.size(); i += 8) {
    uint64_t words[4];
    std::memcpy(words, values.data() + i, sizeof(words));
    for (int lane = 0; lane < 4; ++lane) lanes[lane] = mix(lanes[lane], words[lane]);
  }
  for (; i < values.size(); ++i) {
    uint32_t bits;
    std::memcpy(&bits, &values[i], sizeof(bits));
    lanes[i % 4] = mix(lanes[i % 4], bits);
  }
  uint64_t hash = values.size();
  for (uint64_t lane : lanes) hash = mix(hash, lane);
  return hash;
}

std::vector<OddRank> FindOddRanks(const std::vector<std::vector<uint64_t>>& hashes) {
  std::map<std::vector<uint64_t>, int> holders;
  for (const auto& list : hashes) ++holders[list];
  int like = 0;
  for (size_t r = 0; r < hashes.size(); ++r) {
    if (holders[hashes[r]] > holders[hashes[size_t(like)]]) like = int(r);
  }
  std::vector<OddRank> odd;
  for (size_t r = 0; r < hashes.size(); ++r) {
    const auto& most = hashes[size_t(like)];
    if (hashes[r] == most) continue;
    const auto [a, b] = std::mismatch(hashes[r].begin(), hashes[r].end(), most.begin());
    odd.push_back({int(r), size_t(a - hashes[r].begin()), like});
  }
  return odd;
}

WeightCheck::WeightCheck(Group& group, const Graph& graph, const Layout& layout) : group_(group) {
  for (const FileTensor& tensor : FileTensors(graph, layout)) {
    tensors_.push_back({tensor.spec->name, tensor.range});
  }
  hashes_.resize(tensors_.size());
}

void WeightCheck::Run(int64_t step, std::span<const float> state) {
  uint64_t own = 0;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    const Range range = tensors_[t].range;
    hashes_[t] = HashOfValues(state.subspan(range.begin, range.size));
    own = own * 31 + hashes_[t];
  }
  const auto all = AllGather(group_, kTagWeights, own);
  if (std::equal(all.begin() + 1, all.end(), all.begin())) return;

  const auto bytes = AllGatherBytes(group_, kTagWeights, std::as_bytes(std::span(hashes_)));
  std::vector<std::vector<uint64_t>> lists(group_.size(), hashes_);
  for (size_t r = 0; r < lists.size(); ++r) {
    const size_t length = hashes_.size() * sizeof(uint64_t);
    std::memcpy(lists[r].data(), bytes.data() + r * length, length);
  }
  const std::vector<OddRank> odd = FindOddRanks(lists);
  if (odd.empty()) return;
  std::string names;
  for (const OddRank& o : odd) names += (names.empty() ? "" : ", ") + std::to_string(o.rank);
  throw Error(
      "after step {} rank {}'s weights differ from rank {}'s, first in {}; probably its memory or "
      "its processor is faulty (trainer.check_steps; ranks that differ: {})",
      step, odd[0].rank, odd[0].like, tensors_[odd[0].tensor].name, names);
}

}  // namespace trireme
