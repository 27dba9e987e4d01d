#pragma once
#include <cstdint>
#include <string>

#include "base/options.h"

namespace trireme {

// Section [strategy] of a recipe. What is "auto", -1 or 0 (push, fetch) is as the preset has it.
struct StrategyOptions {
  std::string name = "allreduce";  // a row of strategy/presets.h
  std::string inner = "auto", centre = "auto", merge = "auto", pace = "auto";
  std::string algorithm = "auto";  // of allreduce
  std::string wire = "f32";        // of allreduce
  std::string route = "chain";     // of sync-ps
  std::string overlap = "reduce";  // of sync-ps
  std::string balance = "equal";
  bool sync_batch_norm = false;
  double bucket_mb = 4;
  int period = -1;
  int servers = 1;
  int groups = 0;
  int neighbours = 1;
  int push = 0, fetch = 0;
  float alpha = 0;
  float outer_lr = 1;
  float outer_momentum = 0;
  int64_t staleness = -1;
  std::string stale = "auto";
  double snapshot_s = 30;
};

void Describe(OptionTable<StrategyOptions>& t);

}  // namespace trireme
