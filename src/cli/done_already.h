#pragma once
#include <string>

#include "trainer/job.h"

namespace trireme {

// Of a run that is to be resumed for `job` and has nothing left to do: that it is so, and what goes
// further. Empty: it goes on. `before` is the recipe of its last start.
std::string DoneText(const Job& job, const Recipe& before, const std::string& run);

}  // namespace trireme
