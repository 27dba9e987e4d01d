#include "study/link_words.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace trireme {
namespace {

using Unit = std::pair<std::string_view, double>;
constexpr Unit kRates[] = {{"Gbit/s", 1e9 / 8}, {"Mbit/s", 1e6 / 8}, {"kbit/s", 1e3 / 8},
                           {"GB/s", 1e9},       {"MB/s", 1e6},       {"kB/s", 1e3}};
constexpr Unit kTimes[] = {{"ms", 1}, {"us", 1e-3}};

template <size_t N>
std::optional<double> Measure(std::string_view text, const Unit (&units)[N]) {
  for (const auto& [name, scale] : units) {
    if (!text.ends_with(name)) continue;
    const auto number = ParseNumber<double>(Trim(text.substr(0, text.size() - name.size())));
    if (number && *number >= 0) return *number * scale;
  }
  return {};
}

}  // namespace

LinkWords ParseLink(std::string_view text) {
  const std::vector<std::string> parts = Split(text, ',');
  const auto rate = Measure(Trim(parts[0]), kRates);
  const auto latency =
      parts.size() < 2 ? std::optional<double>(0) : Measure(Trim(parts[1]), kTimes);
  if (parts.size() > 2 || !rate || *rate <= 0 || !latency) {
    throw UsageError(
        "a link must be RATE or RATE,LATENCY, as in 1Gbit/s,5ms or 100MB/s,200us, got {}", text);
  }
  return {.bytes_per_s = *rate, .latency_ms = *latency};
}

}  // namespace trireme
