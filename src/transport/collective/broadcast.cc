#include "transport/collective/broadcast.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"
#include "transport/collective/chain.h"
#include "transport/collective/tree.h"
#include "transport/shared_memory.h"

namespace trireme {
namespace {

constexpr size_t kHopBytes = 1 << 18;  // two are still in a core's cache when they go on

template <class T>
std::span<std::byte> BytesOf(T& value) {
  return std::as_writable_bytes(std::span<T>(&value, 1));
}

void CheckLength(const Group& group, int from, uint64_t length, size_t limit) {
  if (length <= limit) return;
  throw Error("rank {} of {}: {} bytes from rank {} are too many; at most {} are allowed",
              group.rank(), group.size(), length, from, limit);
}

}  // namespace

void Broadcast(Group& group, Tag tag, int root, std::span<std::byte> bytes) {
  const Lane<AsTheyAre<std::byte>> lane{group, tag, nullptr, kHopBytes};
  // Bytes that pass a link one after another, either way.
  const size_t n = size_t(group.size()), depth = size_t(std::bit_width(n - 1));
  if (n > 2 && bytes.size() + (n - 2) * kHopBytes < depth * bytes.size()) {
    ChainBroadcast(lane, root, bytes);
  } else {
    TreeBroadcast(lane, root, bytes);
  }
}

void BroadcastBytes(Group& group, Tag tag, int root, std::vector<std::byte>& bytes, size_t limit) {
  uint64_t length = bytes.size();
  if (group.rank() == root) CheckLength(group, root, length, limit);
  Broadcast(group, tag, root, BytesOf(length));
  CheckLength(group, root, length, limit);
  bytes.resize(length);
  Broadcast(group, tag, root, bytes);
}

void Barrier(Group& group, Tag tag) {
  const int n = group.size(), rank = group.rank();
  for (int reach = 1; reach < n; reach *= 2) {
    Ticket arriving = group.Receive((rank - reach + n) % n, tag, {});
    group.Send((rank + reach) % n, tag, {}).Wait();
    arriving.Wait();
  }
}

std::vector<std::vector<std::byte>> GatherBytes(Group& group, Tag tag, int root,
                                                std::span<const std::byte> bytes, size_t limit) {
  CheckLength(group, group.rank(), bytes.size(), limit);
  uint64_t length = bytes.size();
  if (group.rank() != root) {
    group.Send(root, tag, BytesOf(length)).Wait();
    group.Send(root, tag, bytes).Wait();
    return {};
  }
  const int n = group.size();
  std::vector<uint64_t> lengths(n, length);
  std::vector<std::vector<std::byte>> all(n);
  all[root].assign(bytes.begin(), bytes.end());
  std::vector<Ticket> tickets;  // after what they write: it lives longer
  const auto each_other = [&](auto expect) {
    for (int r = 0; r < n; ++r) {
      if (r != root) tickets.push_back(group.Receive(r, tag, expect(r)));
    }
    for (Ticket& ticket : tickets) ticket.Wait();
    tickets.clear();
  };
  each_other([&](int r) { return BytesOf(lengths[r]); });
  for (int r = 0; r < n; ++r) {
    CheckLength(group, r, lengths[r], limit);
    all[r].resize(lengths[r]);
  }
  each_other([&](int r) { return std::span<std::byte>(all[r]); });
  return all;
}

std::vector<std::vector<double>> Gather(Group& group, Tag tag, int root,
                                        std::span<const double> values) {
  const auto gathered = GatherBytes(group, tag, root, std::as_bytes(values));
  std::vector<std::vector<double>> all(gathered.size());
  for (size_t r = 0; r < all.size(); ++r) {
    all[r].resize(gathered[r].size() / sizeof(double));
    if (!all[r].empty()) std::memcpy(all[r].data(), gathered[r].data(), gathered[r].size());
  }
  return all;
}

// `all` begins with the own record; after a step of reach d it holds those of 2 d ranks from the
// own on.
std::vector<std::byte> AllGatherBytes(Group& group, Tag tag, std::span<const std::byte> bytes) {
  const int n = group.size(), rank = group.rank();
  const size_t length = bytes.size();
  std::vector<std::byte> all(length * size_t(n));
  std::copy(bytes.begin(), bytes.end(), all.begin());
  for (int reach = 1; reach < n; reach *= 2) {
    const size_t count = size_t(std::min(reach, n - reach)) * length;
    const std::span<std::byte> records(all);
    Ticket arriving =
        group.Receive((rank + reach) % n, tag, records.subspan(size_t(reach) * length, count));
    group.Send((rank - reach + n) % n, tag, records.first(count)).Wait();
    arriving.Wait();
  }
  std::rotate(all.begin(), all.end() - ptrdiff_t(length * size_t(rank)), all.end());
  return all;
}

std::span<float> AllocateForAll(Group& group, Tag tag, size_t floats) {
  TRIREME_ASSERT(group.shared_memory());
  float* data = nullptr;
  if (group.rank() == 0) data = group.shared_memory()->Allocate(floats).data();
  Broadcast(group, tag, 0, std::as_writable_bytes(std::span(&data, 1)));
  return {data, floats};
}

}  // namespace trireme
