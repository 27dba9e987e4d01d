#pragma once
#include <string_view>

#include "cli/candidates.h"

namespace trireme {

// The words that may stand for what tables of commands call RECIPE, RUN, MODEL, on|off, ...; none
// for a number or a name of one's own. `typed` is what is there already.
Candidates ValuesOf(std::string_view name, std::string_view typed);

// Those of a recipe's key (section.key); none for an unknown one.
Candidates ValuesOfKey(std::string_view key, std::string_view typed);

Candidates Keys();  // each as section.key=

}  // namespace trireme
