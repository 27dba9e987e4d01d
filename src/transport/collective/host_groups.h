#pragma once
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "transport/group.h"

namespace trireme {

// How many ranks there are, and how they lie on hosts.
struct RankShape {
  int ranks = 1;
  int hosts = 1;
  int fewest = 1, most = 1;  // ranks on one host

  static RankShape OneHost(int ranks) { return {ranks, 1, ranks, ranks}; }
};

// For each rank a number, the same for ranks on one host (by name and boot) that also gave the same
// `part` of it. Every member calls it.
std::vector<int> HostOfRank(Group& group, Tag tag, std::string_view part = "");

// A group whose members know who shares a host with whom. Lives no longer than the group.
class HostGroups {
 public:
  explicit HostGroups(Group& all);  // on one host, or nobody knows; sends nothing

  // Every member calls it with the same list: a number for each rank, the same for ranks of one
  // host.
  HostGroups(Group& all, std::span<const int> host_of_rank);

  const RankShape& shape() const { return shape_; }
  Group& all() { return all_; }
  Group& inner() { return inner_ ? *inner_ : all_; }  // this host's ranks

  // The first ranks of each host, as many as every host has, stand in lanes: rank l of a host is in
  // lane l, and the members of a lane are one rank of each host. Null: on one host, or none of
  // them.
  Group* outer() { return outer_.get(); }
  int lanes() const { return shape_.fewest; }

 private:
  Group& all_;
  RankShape shape_;
  std::unique_ptr<Group> inner_, outer_;
};

}  // namespace trireme
