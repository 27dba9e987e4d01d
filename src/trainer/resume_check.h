#pragma once
#include <string>

#include "recipe/recipe.h"
#include "record/json.h"

namespace trireme {

// What binds a resumed run: other values would make it another run. UsageError names the key.
void CheckResume(Recipe before, Recipe now);

// One line where another build wrote the run's last start (an object of starts.jsonl, or null): its
// numbers may differ in the last digits. Empty where it was this one, or nobody knows.
std::string OtherBuildText(const Json& last_start);

}  // namespace trireme
