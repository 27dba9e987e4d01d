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

// The keys that are set, with their values.
std::vector<std::pair<std::string, std::string>> Emulated(const EmulateOptions& options);

// What one rank pretends in its steps.
class Pretence {
 public:
  Pretence(const EmulateOptions& options, int rank, int ranks);
  bool active() const { return slow_ms_ > 0 || hang_step_ >= 0; }
  bool flips(int64_t step) const { return step == flip_step_; }
  void InForward(int64_t step) const;  // does not return from the step in which it hangs

 private:
  int64_t slow_ms_ = 0;
  int64_t hang_step_ = -1;
  int64_t flip_step_ = -1;
};

}  // namespace trireme
