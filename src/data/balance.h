#pragma once
#include <vector>

#include "data/source.h"

namespace trireme {

// What the loss of a sample counts, by its class, so that all classes that the samples have count
// the same and the mean over the samples is 1: samples / (classes * samples of the class).
std::vector<float> BalancedWeights(const Source& train, int classes);

}  // namespace trireme
