#include "transport/broadcast.h"

namespace trireme {

void Broadcast(Group& group, Tag tag, int root, std::span<std::byte> bytes) {
  const int n = group.size(), place = (group.rank() - root + n) % n;  // the root stands at 0
  int reach = 1;
  while (reach < n) reach *= 2;
  for (; reach > 0; reach /= 2) {
    if (place % (2 * reach) == reach) {
      group.Receive((place - reach + root) % n, tag, bytes).Wait();
    } else if (place % (2 * reach) == 0 && place + reach < n) {
      group.Send((place + reach + root) % n, tag, bytes).Wait();
    }
  }
}

void Barrier(Group& group, Tag tag) {
  const int n = group.size(), rank = group.rank();
  for (int reach = 1; reach < n; reach *= 2) {
    Ticket arriving = group.Receive((rank - reach + n) % n, tag, {});
    group.Send((rank + reach) % n, tag, {}).Wait();
    arriving.Wait();
  }
}

std::vector<std::vector<double>> Gather(Group& group, Tag tag, int root,
                                        std::span<const double> values) {
  const uint64_t length = values.size();
  const auto one = std::as_bytes(std::span<const uint64_t>(&length, 1));
  if (group.rank() != root) {
    group.Send(root, tag, one).Wait();
    group.Send(root, tag, std::as_bytes(values)).Wait();
    return {};
  }
  std::vector<std::vector<double>> all(group.size());
  all[root].assign(values.begin(), values.end());
  for (int r = 0; r < group.size(); ++r) {
    if (r == root) continue;
    uint64_t size = 0;
    group.Receive(r, tag, std::as_writable_bytes(std::span<uint64_t>(&size, 1))).Wait();
    all[r].resize(size);
    group.Receive(r, tag, std::as_writable_bytes(std::span<double>(all[r]))).Wait();
  }
  return all;
}

}  // namespace trireme
