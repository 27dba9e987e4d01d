#pragma once
#include <string>

#include "base/options.h"

namespace trireme {

// Section [engine] of a recipe.
struct EngineOptions {
  std::string winograd = "auto";  // off, f2, f4, auto
};

void Describe(OptionTable<EngineOptions>& t);

}  // namespace trireme
