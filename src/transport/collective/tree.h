#pragma once
#include <bit>

#include "transport/collective/lanes.h"

namespace trireme {

// Binomial trees: in each step the ranks that are done help as many others. For few bytes.

// values of rank 0 = the sum; those of the others are used up.
template <class W>
void TreeReduce(const Lane<W>& lane, std::span<typename W::Value> values) {
  const int n = lane.size(), rank = lane.rank();
  for (int reach = 1; reach < n; reach *= 2) {
    if (rank & reach) {
      Exchange<W, Then::kAdd>(lane, rank - reach, values, rank, {});
      return;
    }
    if (rank + reach < n) Exchange<W, Then::kAdd>(lane, rank, {}, rank + reach, values);
  }
}

// values = those of `root`.
template <class W>
void TreeBroadcast(const Lane<W>& lane, int root, std::span<typename W::Value> values) {
  const int n = lane.size(), rank = lane.rank(), place = (rank - root + n) % n;
  for (int reach = int(std::bit_ceil(unsigned(n))) / 2; reach > 0; reach /= 2) {
    if (place % (2 * reach) == reach) {
      Exchange<W, Then::kReplace>(lane, rank, {}, (rank - reach + n) % n, values);
    } else if (place % (2 * reach) == 0 && place + reach < n) {
      Exchange<W, Then::kReplace>(lane, (rank + reach) % n, values, rank, {});
    }
  }
}

template <class W>
void TreeSum(const Lane<W>& lane, std::span<typename W::Value> values) {
  TreeReduce(lane, values);
  if (lane.rank() == 0) W::Settle(values);
  TreeBroadcast(lane, 0, values);
}

}  // namespace trireme
