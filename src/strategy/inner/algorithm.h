#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "flat/device_group.h"
#include "strategy/inner/inner.h"
#include "transport/group.h"

namespace trireme {

// How `allreduce` sums summands.
//
//   device  by the devices among themselves, where each rank has one of its own (NCCL)
//   shared  where they lie, in memory that all ranks address
//   chain   a sum in shard order (trainer.deterministic), or in rank order
//   others  by messages: transport/collective/all_reduce.h
struct AllReduceNeeds {
  std::string algorithm = "auto";  // strategy.algorithm
  std::string wire = "f32";        // strategy.wire
  bool deterministic = false;
  std::vector<int> shards;          // of each rank; deterministic
  int summands = 1;                 // of this rank
  int most_summands = 1;            // of any
  size_t bytes = 0;                 // of the largest bucket
  DeviceGroups* devices = nullptr;  // of this rank's device, where devices can add up
  const Log* log = nullptr;         // not null: how is said, where devices could have added up
};

std::vector<std::string> AlgorithmNames();  // that strategy.algorithm may have
// Whatever the number of ranks is: possible with trainer.deterministic.
bool AddsInShardOrder(std::string_view algorithm);

// Devices add up, or the run is refused. A rank alone takes this way too, to try it.
bool NeedsDevices(std::string_view algorithm);

// What strategy.algorithm = "auto" is here: "auto" again where devices add up, memory is shared or
// the order is given, so that nothing needs to be chosen; else the algorithm with the least
// estimate of a model whose latency and bandwidth are measured now. Every rank calls it, and gets
// the same.
std::string ChooseAlgorithm(const AllReduceNeeds& needs, Group& group);

// With a resolved algorithm; `group` has several ranks, but for "device". All members call it.
// UsageError where it cannot work.
std::unique_ptr<Inner> MakeAllReduce(const AllReduceNeeds& needs, Group& group);

}  // namespace trireme
