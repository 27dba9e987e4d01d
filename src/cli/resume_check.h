#pragma once
#include "trainer/recipe.h"

namespace trireme {

// What binds a resumed run: other values would make it another run. UsageError names the key.
void CheckResume(const Recipe& before, const Recipe& now);

}  // namespace trireme
