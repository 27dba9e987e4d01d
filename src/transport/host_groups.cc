#include "transport/host_groups.h"

#include <algorithm>
#include <map>

#include "base/assert.h"

namespace trireme {

HostGroups::HostGroups(Group& all) : all_(all), shape_(RankShape::OneHost(all.size())) {}

HostGroups::HostGroups(Group& all, std::span<const int> host_of_rank) : HostGroups(all) {
  TRIREME_ASSERT(int(host_of_rank.size()) == all.size());
  std::map<int, int> ranks_on;
  for (int host : host_of_rank) ++ranks_on[host];
  if (ranks_on.size() == 1) return;
  const auto [fewest, most] =
      std::minmax_element(ranks_on.begin(), ranks_on.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
  shape_ = {all.size(), int(ranks_on.size()), fewest->second, most->second};
  inner_ = all.Split(host_of_rank[all.rank()]);
  const int lane = std::min(inner_->rank(), lanes());
  outer_ = all.Split(lane);
  if (lane == lanes()) outer_.reset();
}

}  // namespace trireme
