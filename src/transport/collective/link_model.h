#pragma once
#include <span>

#include "transport/collective/all_reduce.h"

namespace trireme {

// What a message between two ranks takes: latency_s + bytes * seconds_per_byte (Hockney 1994).
struct LinkSpeed {
  double latency_s = 0;
  double seconds_per_byte = 0;
};

struct LinkModel {
  LinkSpeed any;                      // the slowest pair of neighbours
  LinkSpeed inner;                    // the slowest such pair on one host
  double seconds_per_added_byte = 0;  // of float32 in the cache, the slowest rank
};

// Takes a few milliseconds: each pair of neighbours sends messages to and fro, short ones and 1
// MiB. Every member calls it and gets the same numbers.
LinkModel MeasureLink(HostGroups& hosts, Tag tag);

// Seconds that a sum of `bytes` (on the wire) should take.
double EstimateAllReduce(const LinkModel& model, const RankShape& shape, double bytes,
                         const AllReduceAlgorithm& algorithm);

// The candidate (one or more) with the least estimate; of equals the first. A function of its
// arguments alone.
const AllReduceAlgorithm& ChooseAllReduce(const LinkModel& model, const RankShape& shape,
                                          double bytes,
                                          std::span<const AllReduceAlgorithm* const> candidates);

}  // namespace trireme
