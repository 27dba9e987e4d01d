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

}  // namespace trireme
