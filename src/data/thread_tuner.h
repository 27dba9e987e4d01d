#pragma once
#include <cstdint>

namespace trireme {

// Threads that a loader begins with, and the most that it may add where it waits; equal where the
// number was given.
struct LoaderThreads {
  int first = 0;
  int most = 0;
};

// Finds how many threads a loader needs by what they give: more of them while training waits, as
// many as should be enough; where they did not help, those before, and for good. Knows no clock.
class ThreadTuner {
 public:
  explicit ThreadTuner(const LoaderThreads& threads);

  int threads() const { return threads_; }  // to have now
  bool settled() const { return settled_; }

  // What came of the next stretch of time with threads().
  void Add(double seconds, double waited_s, int64_t taken);

 private:
  const int most_;
  int threads_;
  bool settled_;
  int threads_before_ = 0;  // 0: these are the first
  double rate_before_ = 0;  // requests a second
};

}  // namespace trireme
