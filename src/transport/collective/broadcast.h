#pragma once
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "transport/group.h"

namespace trireme {

// Every member calls these. N ranks.

// bytes = those of rank `root`. Short messages go along a binomial tree: log2 N steps, each rank
// receives once. Long ones run along a chain of ranks in pieces: each rank sends them once, and the
// last has them N - 2 pieces after the first.
void Broadcast(Group& group, Tag tag, int root, std::span<std::byte> bytes);

// The same, and the length travels too: bytes gets that of `root`.
// No message is longer than `limit`: whoever meets a longer one throws.
constexpr size_t kMessageLimit = size_t{1} << 30;
void BroadcastBytes(Group& group, Tag tag, int root, std::vector<std::byte>& bytes,
                    size_t limit = kMessageLimit);

// Returns when all have called it. Dissemination (Hensgen, Finkel, Manber 1988): log2 N steps, no
// bytes.
void Barrier(Group& group, Tag tag);

// At rank `root` all members' bytes, in the order of their ranks; elsewhere nothing. The lengths
// may differ, up to `limit`. 2 (N - 1) messages to the root, lengths first; the bytes travel once.
std::vector<std::vector<std::byte>> GatherBytes(Group& group, Tag tag, int root,
                                                std::span<const std::byte> bytes,
                                                size_t limit = kMessageLimit);
std::vector<std::vector<double>> Gather(Group& group, Tag tag, int root,
                                        std::span<const double> values);

// All members' bytes one after another, in the order of their ranks. All have the same length, and
// few. Bruck et al. 1997: log2 N steps, rounded up; each rank sends (N - 1) times its length.
std::vector<std::byte> AllGatherBytes(Group& group, Tag tag, std::span<const std::byte> bytes);

template <class T>
std::vector<T> AllGather(Group& group, Tag tag, const T& record) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto bytes = AllGatherBytes(group, tag, std::as_bytes(std::span<const T>(&record, 1)));
  std::vector<T> all(group.size());
  std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
}

// One memory for all members of a group that has a SharedMemory: the first member's. Every member
// calls it.
std::span<float> AllocateForAll(Group& group, Tag tag, size_t floats);

}  // namespace trireme
