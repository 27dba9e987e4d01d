#include "transport/collective/host_groups.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/assert.h"
#include "base/error.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/sha256.h"
#include "transport/collective/broadcast.h"

namespace trireme {

std::vector<int> HostOfRank(Group& group, Tag tag, std::string_view part) {
  std::string text = HostName();
  try {
    text += ReadFile("/proc/sys/kernel/random/boot_id", 100);
  } catch (const Error&) {  // the name alone then
  }
  text += part;
  std::array<char, 64> own;
  const std::string hash_text = Sha256Hex(text);
  std::copy_n(hash_text.begin(), own.size(), own.begin());
  const auto hashes = AllGather(group, tag, own);
  std::vector<int> hosts;
  for (const auto& hash : hashes) {
    hosts.push_back(int(std::find(hashes.begin(), hashes.end(), hash) - hashes.begin()));
  }
  return hosts;
}

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
