#include "trainer/emulate.h"

#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "base/toml.h"

namespace trireme {

void Describe(OptionTable<EmulateOptions>& t) {
  t.Add("slow", &EmulateOptions::slow, Any(),
        "RANK:MS: that rank sleeps so many milliseconds in the forward part of every step");
  t.Add("hang", &EmulateOptions::hang, Any(),
        "RANK:STEP: that rank stops for ever in that step (see trainer.stall_seconds)");
  t.Add("flip", &EmulateOptions::flip, Any(),
        "RANK:STEP: in that rank one bit of a weight flips behind that step (see "
        "trainer.check_steps)");
}

std::optional<RankAndNumber> ParseRankAndNumber(const std::string& text, const char* key,
                                                int ranks) {
  if (text.empty()) return {};
  const std::vector<std::string> parts = Split(text, ':');
  const auto rank = ParseNumber<int>(parts[0]);
  const auto number = parts.size() == 2 ? ParseNumber<int64_t>(parts[1]) : std::nullopt;
  if (!rank || !number || *rank < 0 || *number < 0) {
    throw UsageError("{} must be RANK:NUMBER, got {}", key, QuoteToml(text));
  }
  if (*rank >= ranks) {
    throw UsageError("{} = {}: there are {} ranks (transport.ranks)", key, QuoteToml(text), ranks);
  }
  return RankAndNumber{*rank, *number};
}

std::vector<std::pair<std::string, std::string>> Emulated(const EmulateOptions& options) {
  std::vector<std::pair<std::string, std::string>> keys;
  if (!options.slow.empty()) keys.emplace_back("slow", options.slow);
  if (!options.hang.empty()) keys.emplace_back("hang", options.hang);
  if (!options.flip.empty()) keys.emplace_back("flip", options.flip);
  return keys;
}

Pretence::Pretence(const EmulateOptions& options, int rank, int ranks) {
  const auto slow = ParseRankAndNumber(options.slow, "emulate.slow", ranks);
  const auto hang = ParseRankAndNumber(options.hang, "emulate.hang", ranks);
  const auto flip = ParseRankAndNumber(options.flip, "emulate.flip", ranks);
  if (slow && slow->rank == rank) slow_ms_ = slow->number;
  if (hang && hang->rank == rank) hang_step_ = hang->number;
  if (flip && flip->rank == rank) flip_step_ = flip->number;
}

void Pretence::InForward(int64_t step) const {
  if (slow_ms_) std::this_thread::sleep_for(std::chrono::milliseconds(slow_ms_));
  while (step == hang_step_) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace trireme
