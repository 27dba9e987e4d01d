#pragma once
#include <chrono>

namespace trireme {

inline double Now() {  // seconds on a clock that never goes back
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Stopwatch {
 public:
  double seconds() const { return Now() - start_; }

 private:
  double start_ = Now();
};

// Reading a clock twice costs 100 ns, and there are things that hardly take longer: of short ones
// one of some is measured and stands for them.
class SomeOfMany {
 public:
  // For how many the next one stands; 0: it is not measured.
  unsigned Next() {
    const unsigned counts = are_short_ ? kSome : 1;
    return number_++ % counts == 0 ? counts : 0;
  }
  void Took(double seconds) { are_short_ = seconds < kShort_s; }

 private:
  static constexpr unsigned kSome = 8;
  static constexpr double kShort_s = 20e-6;
  unsigned number_ = 0;
  bool are_short_ = false;
};

}  // namespace trireme
