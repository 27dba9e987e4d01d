#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace trireme {

// How many versions the weights of updates were behind when they were applied.
class Staleness {
 public:
  static constexpr size_t kMost = 1000;  // the last count: or more

  void Add(int64_t versions);
  void Add(const Staleness& other);
  int64_t updates() const;
  double mean() const;
  int64_t most() const { return counts_.empty() ? 0 : int64_t(counts_.size()) - 1; }
  std::span<const int64_t> counts() const { return counts_; }  // by versions; the last is not 0
  static Staleness Of(std::span<const int64_t> counts);        // throws Error where they are none

 private:
  std::vector<int64_t> counts_;
};

}  // namespace trireme
