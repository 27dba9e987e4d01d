#pragma once
#include <string>

#include "base/options.h"

namespace trireme {

// Section [record] of a recipe.
struct RecordOptions {
  std::string trace;
  int trace_mb = 64;
  bool tensorboard = false;
};

void Describe(OptionTable<RecordOptions>& t);

}  // namespace trireme
