#pragma once
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// Which values a key takes: a range of numbers, a list of words, or either. For a list of numbers
// it holds for each of them.
struct Check {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool above_low = false;   // low itself is refused
  bool below_high = false;  // high itself is refused
  std::vector<std::string> words;
  bool (*takes)(std::string_view word) = nullptr;  // not null: decides, `words` only tell

  bool Allows(double number) const;
  bool Allows(std::string_view word) const;  // any word, when none are listed
  std::string Words() const;                 // at least 1 or "full"; empty when all is allowed
};

Check Any();
Check AtLeast(double low);
Check AtMost(double high);
Check Above(double low);
Check Below(double high);
Check Between(double low, double high);  // both ends allowed
Check OneOf(std::vector<std::string> words);
// Words that no list can hold, "cuda:K": `words` tell of them, `takes` decides.
Check OneLike(std::vector<std::string> words, bool (*takes)(std::string_view word));
Check operator&&(const Check& a, const Check& b);  // numbers that both ranges allow
Check operator||(const Check& a, const Check& b);  // a range of numbers, or a list of words

}  // namespace trireme
