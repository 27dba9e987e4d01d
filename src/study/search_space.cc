#include "study/search_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "recipe/recipe.h"
#include "study/sweep_plan.h"

namespace trireme {
namespace {

constexpr char kDots[] = "..";
constexpr char kLog[] = ":log";

// The value as --set would take it. UsageError where it would not.
void CheckValue(const std::string& key, const std::string& value) {
  Recipe recipe;
  Sections sections;
  Bind(sections, recipe);
  try {
    sections.SetAssignment(key + "=" + value);
  } catch (const UsageError& error) {
    std::string_view what = error.what();  // --set ...: said of what was written as --vary
    if (what.starts_with("--set ")) what.remove_prefix(6);
    throw UsageError("--vary {}", what);
  }
}

bool IsWhole(const std::string& key) {
  Recipe recipe;
  Sections sections;
  Bind(sections, recipe);
  return sections.At(key).Type() == "an integer";
}

void ReadRange(const std::string& text, size_t dots, SearchKey& key) {
  std::string_view high = std::string_view(key.text).substr(dots + 2);
  key.logarithmic = high.ends_with(kLog);
  if (key.logarithmic) high.remove_suffix(sizeof(kLog) - 1);
  const std::string ends[] = {key.text.substr(0, dots), std::string(high)};
  const auto low_number = ParseNumber<double>(ends[0]), high_number = ParseNumber<double>(ends[1]);
  if (!low_number || !high_number || *low_number >= *high_number) {
    throw UsageError(
        "--vary {}: a range is LOW..HIGH or LOW..HIGH:log with two numbers, the lower one first",
        text);
  }
  if (key.logarithmic && *low_number <= 0) {
    throw UsageError("--vary {}: a range on a logarithmic scale must begin above 0", text);
  }
  key.low = *low_number;
  key.high = *high_number;
  for (const std::string& end : ends) CheckValue(key.key, end);
  key.whole = IsWhole(key.key);
}

std::string DrawNumber(const SearchKey& key, double share) {
  const double end = key.whole ? key.high + 1 : key.high;  // each whole number as likely
  const double drawn = key.logarithmic ? key.low * std::pow(end / key.low, share)
                                       : key.low + (end - key.low) * share;
  if (key.whole) return fmt::format("{}", int64_t(std::min(std::floor(drawn), key.high)));
  // Rounded, it may lie beyond an end.
  const double rounded = *ParseNumber<double>(fmt::format("{:.4g}", drawn));
  return fmt::format("{}", std::clamp(rounded, key.low, key.high));
}

uint64_t NumberOf(const std::string& name) {
  uint64_t number = 0;
  for (const char c : name) number = Hash(number, uint64_t(uint8_t(c)));
  return number;
}

}  // namespace

SearchKey ParseSearchKey(const std::string& text) {
  const Variation list = ParseVariation(text);
  SearchKey key{.key = list.key, .text = text.substr(text.find('=') + 1)};
  const size_t dots = key.text.find(kDots);
  if (list.values.size() == 1 && dots != std::string::npos && key.text[0] != '"') {
    ReadRange(text, dots, key);
    return key;
  }
  key.values = list.values;
  for (const std::string& value : key.values) CheckValue(key.key, value);
  return key;
}

std::vector<std::string> DrawValues(const std::vector<SearchKey>& keys, uint64_t seed, int trial) {
  std::vector<std::string> drawn;
  for (const SearchKey& key : keys) {
    const Random random(Hash(seed, NumberOf(key.key)));
    const double share = random.Uniform(uint64_t(trial));
    if (key.values.empty()) {
      drawn.push_back(DrawNumber(key, share));
    } else {
      drawn.push_back(key.values[size_t(share * double(key.values.size()))]);
    }
  }
  return drawn;
}

}  // namespace trireme
