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
  // Both stay until the end: an exception must not go while another thread still reads its text.
  struct Kept {
    std::exception_ptr error;
    int rank = 0;
  };
  std::mutex mutex_;  // guards all below
  Kept real_, echo_;  // the first of each
};

}  // namespace trireme
