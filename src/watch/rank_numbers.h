#pragma once
#include <span>
#include <vector>

#include "record/metrics.h"
#include "transport/group.h"
#include "watch/straggler.h"

namespace trireme {

// What a rank measured in an epoch.
struct RankNumbers {
  RankRecord rank;
  std::vector<double> silences;  // seconds in which it heard nothing from each rank
};

// Every member calls it: at rank 0 the numbers of all in the order of ranks, elsewhere nothing.
std::vector<RankNumbers> GatherNumbers(Group& group, const RankNumbers& own);

RankShare ShareOf(const StepTimes& times);
// A rank was silent for as long as nobody heard it.
std::vector<RankShare> SharesOf(std::span<const RankNumbers> all);

}  // namespace trireme
