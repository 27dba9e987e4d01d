#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/options.h"

namespace trireme {

// Section [emulate] of a recipe: faults and machines that are not there, for experiments and tests.
struct EmulateOptions {
  double step_ms = 0;
  bool spread = false;
  double decode_ms = 0;
  std::string slow;
  std::string hang;
  std::string flip;
};

void Describe(OptionTable<EmulateOptions>& t);

// "RANK:NUMBER", or nothing for an empty text. UsageError names `key` where it is something else.
struct RankAndNumber {
  int rank = 0;
  int64_t number = 0;
};
std::optional<RankAndNumber> ParseRankAndNumber(const std::string& text, const char* key,
                                                int ranks);

// "RANK:MS" or "RANK:FACTORx", as emulate.slow has them; nothing for an empty text.
struct SlowRank {
  int rank = 0;
  double more_ms = 0;  // of each step
  double factor = 1;   // of a step's time
};
std::optional<SlowRank> ParseSlow(const std::string& text, const char* key, int ranks);

// The keys that are set, with their values.
std::vector<std::pair<std::string, std::string>> Emulated(const EmulateOptions& options);

}  // namespace trireme
