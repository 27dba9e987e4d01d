#pragma once
#include <span>
#include <vector>

#include "health/straggler.h"
#include "record/metrics.h"
#include "transport/group.h"

namespace trireme {

// What a rank measured in an epoch.
struct RankStats {
  RankRecord rank;
  std::vector<double> silences;  // seconds in which it heard nothing from each rank
};

// Every member calls it: at rank 0 the numbers of all in the order of ranks, elsewhere nothing.
std::vector<RankStats> GatherNumbers(Group& group, const RankStats& own);

RankShare ShareOf(const StepTimes& times);
// A rank was silent for as long as nobody heard it.
std::vector<RankShare> SharesOf(std::span<const RankStats> all);

}  // namespace trireme
