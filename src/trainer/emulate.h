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

// What one rank pretends in its steps. One thread.
class Pretence {
 public:
  Pretence(const EmulateOptions& options, int rank, int ranks);
  bool active() const { return step_s_ > 0 || sleep_s_ > 0 || factor_ > 1 || hang_step_ >= 0; }
  bool flips(int64_t step) const { return step == flip_step_; }
  // Does not return from the step in which it hangs. With emulate.step_ms what the last step really
  // computed is a part of the time: a step takes so long, whoever else needs the processors.
  void InForward(int64_t step) const;
  void Computed(double seconds) { computed_s_ = seconds; }

 private:
  double step_s_ = 0;   // of a whole step; 0: as long as it takes
  double sleep_s_ = 0;  // besides
  double factor_ = 1;
  double computed_s_ = 0;
  int64_t hang_step_ = -1;
  int64_t flip_step_ = -1;
};

}  // namespace trireme
