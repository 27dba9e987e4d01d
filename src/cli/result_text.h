#pragma once
#include <string>

#include "trainer/train.h"

namespace trireme {

// What the end of a training says: why, how long, how good, where.
std::string ResultText(const Job& job, const Outcome& outcome, const std::string& run);

}  // namespace trireme
