#pragma once
#include <span>
#include <vector>

namespace trireme {

// How many shards of a step each worker takes; they take them in order. Equal on all ranks.
std::vector<int> EqualSplit(int shards, int workers);
inline int MostEqualShards(int shards, int workers) { return (shards + workers - 1) / workers; }

// By how long each worker takes for a sample: at least one shard each, and there is no other split
// with which the last worker is done earlier. `shards` is no less than the number of workers.
std::vector<int> SplitByRate(int shards, std::span<const double> seconds_per_sample);
inline int MostShards(int shards, int workers) { return shards - workers + 1; }  // of one of them

}  // namespace trireme
