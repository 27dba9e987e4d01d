#pragma once
#include <exception>
#include <mutex>

namespace trireme {

// The error that a job ends with: the first one of any rank. A PeerLost is the echo of another
// rank's error and gives way to a real one. Thread-safe.
class FirstError {
 public:
  void Keep(int rank, std::exception_ptr error) noexcept;
  void Rethrow(int ranks);  // with the rank added; returns if there was none

 private:
  std::mutex mutex_;  // guards all below
  std::exception_ptr error_;
  bool echo_ = false;
  int rank_ = 0;
};

}  // namespace trireme
