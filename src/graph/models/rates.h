#pragma once
#include <string>
#include <vector>

#include "graph/graph.h"

namespace trireme {

// optimizer.rates, "NAME=FACTOR NAME=FACTOR": by parameter, what the rate is multiplied by. Of
// several names that a layer is within the longest counts; the other layers have 1. Empty where
// nothing is said. UsageError where it says something else, or of a layer that is frozen.
std::vector<double> RatesOf(const Graph& graph, const std::string& rates);

}  // namespace trireme
