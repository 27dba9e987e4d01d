#include "health/weight_check.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/error.h"
#include "flat/arithmetic.h"
#include "flat/staging.h"
#include "model/model_file.h"
#include "strategy/step/tags.h"
#include "transport/collective/broadcast.h"

namespace trireme {

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

WeightCheck::WeightCheck(Group& group, const Graph& graph, const Layout& layout, Device& device)
    : group_(group),
      digests_(device, FileTensors(graph, layout).size() * flat::kDigestFloats),
      hashes_(digests_.slice().size / flat::kDigestFloats) {
  for (const FileTensor& tensor : FileTensors(graph, layout)) {
    names_.push_back(tensor.spec->name);
    ranges_.push_back(tensor.range);
  }
}

void WeightCheck::Run(int64_t step, Queue& queue, Slice state) {
  flat::Digest(queue, state, ranges_, digests_);
  flat::GetNow(queue, digests_, {reinterpret_cast<float*>(hashes_.data()), digests_.slice().size});
  uint64_t own = 0;
  for (const uint64_t hash : hashes_) own = own * 31 + hash;
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
      step, odd[0].rank, odd[0].like, names_[odd[0].tensor], names);
}

}  // namespace trireme
