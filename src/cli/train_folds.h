#pragma once
#include <string>

#include "cli/command.h"
#include "recipe/recipe.h"

namespace trireme {

// `trireme train --folds`: cross-validation of the recipe, whose data.folds says how many. `stem`
// names a new folder.
int CrossValidate(const Args& args, Process& process, Recipe recipe, const std::string& stem);

}  // namespace trireme
