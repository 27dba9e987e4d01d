#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace trireme {

// A key and what a search may give it: one of some values, or a number of a range.
struct SearchKey {
  std::string key;
  std::string text;                 // as it was written, behind the =
  std::vector<std::string> values;  // empty: a range
  double low = 0, high = 0;
  bool logarithmic = false;  // every factor is as likely as any other
  bool whole = false;        // only whole numbers, both ends among them
};

// "KEY=V1,V2,..." as a sweep's, "KEY=LOW..HIGH" or "KEY=LOW..HIGH:log". UsageError: no such key, a
// value that it cannot have, a range without numbers or order.
SearchKey ParseSearchKey(const std::string& text);

// What trial `trial` sets: a value of each key, which depends on nothing but the key, the seed and
// the trial. A number of a range has four digits that count.
std::vector<std::string> DrawValues(const std::vector<SearchKey>& keys, uint64_t seed, int trial);

}  // namespace trireme
