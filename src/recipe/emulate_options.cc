#include "recipe/emulate_options.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "base/toml.h"

namespace trireme {

void Describe(OptionTable<EmulateOptions>& t) {
  using enum Binds;
  t.Add("step_ms", &EmulateOptions::step_ms, AtLeast(0) && AtMost(1e6), kRanks,
        "milliseconds that every step of a worker takes: it sleeps in forward for what computing "
        "leaves of them, so that a few processors can carry many workers; 0: as long as computing "
        "takes");
  t.Add("spread", &EmulateOptions::spread, Any(), kRanks,
        "spread what is slept in a step (step_ms, slow) over its buckets of weights, a third in "
        "forward and the rest in backward, so that communication can hide behind it; otherwise all "
        "of it comes before forward");
  t.Add("decode_ms", &EmulateOptions::decode_ms, AtLeast(0) && AtMost(1e6), kRanks,
        "extra milliseconds to fetch each training sample: the thread that fetches it "
        "(data.threads) sleeps, so that a few processors can carry many such threads");
  t.Add("slow", &EmulateOptions::slow, Any(), kRanks,
        "RANK:MS: that rank sleeps MS milliseconds more in the forward part of every step; "
        "RANK:FACTORx: its steps take FACTOR times as long");
  t.Add("hang", &EmulateOptions::hang, Any(), kRanks,
        "RANK:STEP: that rank hangs forever in that step (see trainer.stall_seconds)");
  t.Add("flip", &EmulateOptions::flip, Any(), kRanks,
        "RANK:STEP: one bit of a weight flips in that rank after that step (see "
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
    throw UsageError("{} = {}: there {} only {} (transport.ranks)", key, QuoteToml(text),
                     ranks == 1 ? "is" : "are", Counted(ranks, "rank"));
  }
  return RankAndNumber{*rank, *number};
}

std::optional<SlowRank> ParseSlow(const std::string& text, const char* key, int ranks) {
  if (text.empty() || text.back() != 'x') {
    const auto slow = ParseRankAndNumber(text, key, ranks);
    if (!slow) return {};
    return SlowRank{.rank = slow->rank, .more_ms = double(slow->number)};
  }
  const std::vector<std::string> parts = Split(text.substr(0, text.size() - 1), ':');
  const auto rank = ParseNumber<int>(parts[0]);
  const auto factor = parts.size() == 2 ? ParseNumber<double>(parts[1]) : std::nullopt;
  if (!rank || !factor || *rank < 0 || *factor < 1 || *factor > 1e6) {
    throw UsageError("{} must be RANK:MS or RANK:FACTORx with a factor of at least 1, got {}", key,
                     QuoteToml(text));
  }
  if (*rank >= ranks) {
    throw UsageError("{} = {}: there {} only {} (transport.ranks)", key, QuoteToml(text),
                     ranks == 1 ? "is" : "are", Counted(ranks, "rank"));
  }
  return SlowRank{.rank = *rank, .factor = *factor};
}

std::vector<std::pair<std::string, std::string>> Emulated(const EmulateOptions& options) {
  std::vector<std::pair<std::string, std::string>> keys;
  if (options.step_ms > 0) keys.emplace_back("step_ms", fmt::format("{:g}", options.step_ms));
  if (options.spread) keys.emplace_back("spread", "true");
  if (options.decode_ms > 0) keys.emplace_back("decode_ms", fmt::format("{:g}", options.decode_ms));
  if (!options.slow.empty()) keys.emplace_back("slow", options.slow);
  if (!options.hang.empty()) keys.emplace_back("hang", options.hang);
  if (!options.flip.empty()) keys.emplace_back("flip", options.flip);
  return keys;
}

}  // namespace trireme
