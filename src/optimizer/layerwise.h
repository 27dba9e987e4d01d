#pragma once
#include <memory>

#include "optimizer/rules.h"

namespace trireme {

// Rules for large batches: how far a tensor moves follows from its own length, by a trust ratio.
// Biases and norms, which no weight decay pulls either, have a ratio of 1.

// LARS (You, Gitman, Ginsburg 2017).
std::unique_ptr<Rule> MakeLars(const OptimizerOptions& options);
// LAMB (You et al. 2020), with the length itself for phi.
std::unique_ptr<Rule> MakeLamb(const OptimizerOptions& options);

}  // namespace trireme
