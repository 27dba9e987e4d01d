#pragma once
#include "transport/collective/lanes.h"

namespace trireme {

// Ranks 0 ... n - 1 of a group in a circle (Patarasuk, Yuan 2009): each sends to the next only.

// The stretch whose sum is complete at a rank after RingReduceScatter.
template <class T>
std::span<T> OwnStretch(std::span<T> values, int rank, int n) {
  return Stretch(values, (rank + 1) % n, n);
}

// Each stretch travels once around, growing, and is complete at the rank before its first.
template <class W>
void RingReduceScatter(const Lane<W>& lane, int n, std::span<typename W::Value> values) {
  const int rank = lane.rank(), next = (rank + 1) % n, before = (rank + n - 1) % n;
  const auto stretch = [&](int c) { return Stretch(values, (c + n) % n, n); };
  for (int s = 0; s < n - 1; ++s) {
    Exchange<W, Then::kAdd>(lane, next, stretch(rank - s), before, stretch(rank - s - 1));
  }
}

// From there it travels around once more.
template <class W>
void RingAllGather(const Lane<W>& lane, int n, std::span<typename W::Value> values) {
  const int rank = lane.rank(), next = (rank + 1) % n, before = (rank + n - 1) % n;
  const auto stretch = [&](int c) { return Stretch(values, (c + n) % n, n); };
  for (int s = 0; s < n - 1; ++s) {
    Exchange<W, Then::kReplace>(lane, next, stretch(rank + 1 - s), before, stretch(rank - s));
  }
}

template <class W>
void RingSum(const Lane<W>& lane, int n, std::span<typename W::Value> values) {
  RingReduceScatter(lane, n, values);
  W::Settle(OwnStretch(values, lane.rank(), n));
  RingAllGather(lane, n, values);
}

}  // namespace trireme
