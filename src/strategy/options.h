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
  int period = 10;            // easgd, local-sgd
  float alpha = 0;            // easgd
  double outer_lr = 1;        // local-sgd
  double outer_momentum = 0;  // local-sgd
};

void Describe(OptionTable<StrategyOptions>& t);

}  // namespace trireme
