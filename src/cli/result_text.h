#pragma once
#include <string>

#include "trainer/train.h"

namespace trireme {

// "2 epochs, 30 steps", "0.2 epochs, 3 steps"
std::string LengthText(const Job& job, int64_t steps);

// What the end of a training says: why, how long, how good, where.
std::string ResultText(const Job& job, const Outcome& outcome, const std::string& run);

}  // namespace trireme
