#pragma once
#include <span>
#include <string_view>

namespace trireme {

// A known combination of the four choices, in the words of a recipe: one row of the list.
struct StrategyPreset {
  const char* name;
  const char* help;
  const char* inner;
  const char* centre = "none";
  const char* merge = "gradient";
  const char* pace = "in-step";
  int period = 10;
  int push = 1, fetch = 1;
  int staleness = -1;
  bool broadcasts = false;
  // Where a recipe has strategy.centre = "memory"; null: as above.
  const char* memory_inner = nullptr;
  const char* memory_merge = nullptr;
};

std::span<const StrategyPreset> StrategyPresets();
const StrategyPreset& FindPreset(std::string_view name);  // UsageError: no such strategy

}  // namespace trireme
