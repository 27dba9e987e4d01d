#pragma once
#include <string>

#include "base/options.h"

namespace trireme {

// Section [strategy] of a recipe.
struct StrategyOptions {
  std::string name = "allreduce";  // a row of strategy/presets.h
  std::string algorithm = "auto";  // of allreduce
  std::string merge = "gradient";  // of sync-ps
  std::string wire = "f32";        // of allreduce
  bool sync_batch_norm = false;
  double bucket_mb = 4;
  int period = 10;  // easgd
  float alpha = 0;  // easgd
};

void Describe(OptionTable<StrategyOptions>& t);

}  // namespace trireme
