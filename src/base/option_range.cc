#include "base/option_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/assert.h"
#include "base/toml.h"

namespace trireme {

bool Check::Allows(double number) const {
  return (above_low ? number > low : number >= low) &&
         (below_high ? number < high : number <= high);
}

bool Check::Allows(std::string_view word) const {
  if (takes) return takes(word);
  return words.empty() || std::find(words.begin(), words.end(), word) != words.end();
}

std::string Check::Words() const {
  const bool from = std::isfinite(low);
  const bool to = std::isfinite(high);
  std::string text;
  if (from && to && !above_low && !below_high) {
    text = fmt::format("between {} and {}", low, high);
  } else {
    if (from) text += fmt::format("{} {}", above_low ? "above" : "at least", low);
    if (from && to) text += " and ";
    if (to) text += fmt::format("{} {}", below_high ? "below" : "at most", high);
  }
  if (words.empty()) return text;
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(QuoteToml(word));
  const std::string list = fmt::format("{}", fmt::join(quoted, ", "));
  if (!text.empty()) return text + " or " + list;
  return words.size() == 1 ? list : "one of " + list;
}

Check Any() { return {}; }
Check AtLeast(double low) { return {.low = low}; }
Check AtMost(double high) { return {.high = high}; }
Check Above(double low) { return {.low = low, .above_low = true}; }
Check Below(double high) { return {.high = high, .below_high = true}; }
Check Between(double low, double high) { return {.low = low, .high = high}; }
Check OneOf(std::vector<std::string> words) { return {.words = std::move(words)}; }

Check OneLike(std::vector<std::string> words, bool (*takes)(std::string_view word)) {
  return {.words = std::move(words), .takes = takes};
}

Check operator&&(const Check& a, const Check& b) {
  TRIREME_ASSERT(a.words.empty() && b.words.empty());
  Check both = a;
  if (b.low > a.low || (b.low == a.low && b.above_low)) {
    both.low = b.low;
    both.above_low = b.above_low;
  }
  if (b.high < a.high || (b.high == a.high && b.below_high)) {
    both.high = b.high;
    both.below_high = b.below_high;
  }
  return both;
}

Check operator||(const Check& a, const Check& b) {
  const bool ranges_first = a.words.empty();
  TRIREME_ASSERT(ranges_first != b.words.empty());
  Check either = ranges_first ? a : b;
  either.words = ranges_first ? b.words : a.words;
  return either;
}

}  // namespace trireme
