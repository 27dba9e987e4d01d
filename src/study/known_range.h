#pragma once
#include <string>

#include "recipe/recipe.h"

namespace trireme {

// Where a range test of the learning rate (trireme tune) lies beside a run and is of the same
// network, data, batch and update rule, and the run's rate is above the one at which its loss was
// the lowest: a sentence with the rate to take. Empty otherwise. `runs`: the folder that holds
// them; of several tests the newest counts. No test is made.
std::string RateAboveRange(const Recipe& recipe, const std::string& runs);

}  // namespace trireme
