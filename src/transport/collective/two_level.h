#pragma once
#include "transport/collective/host_groups.h"
#include "transport/collective/ring.h"

namespace trireme {

// Inside a host, between hosts, inside again. The lanes of a host reduce and scatter among
// themselves, each lane sums its own stretch with the same lane of the other hosts, and the results
// are gathered. Ranks beyond the lanes, on hosts that have more than others, hand their values to a
// lane first and get the result at the end.
template <class W>
void TwoLevelSum(HostGroups& hosts, Tag tag, std::span<typename W::Value> values,
                 std::span<typename W::Value> scratch) {
  const Lane<W> inner = LaneOf<W>(hosts.inner(), tag, scratch);
  const int rank = inner.rank(), lanes = hosts.lanes();
  if (rank >= lanes) {
    Exchange<W, Then::kAdd>(inner, rank % lanes, values, rank, {});
    Exchange<W, Then::kReplace>(inner, rank, {}, rank % lanes, values);
    return;
  }
  for (int r = rank + lanes; r < inner.size(); r += lanes) {
    Exchange<W, Then::kAdd>(inner, rank, {}, r, values);
  }
  RingReduceScatter(inner, lanes, values);
  const auto own = OwnStretch(values, rank, lanes);
  if (Group* outer = hosts.outer()) {
    RingSum(LaneOf<W>(*outer, tag, scratch), outer->size(), own);
  } else {
    W::Settle(own);
  }
  RingAllGather(inner, lanes, values);
  for (int r = rank + lanes; r < inner.size(); r += lanes) {
    Exchange<W, Then::kReplace>(inner, r, values, rank, {});
  }
}

}  // namespace trireme
