#pragma once
#include <string>

namespace trireme {

// Held by the one process that writes into a run's folder; disappears with the process, however it
// ends. Taking a lock that somebody holds is an Error.
class RunLock {
 public:
  static constexpr char kName[] = ".lock";

  explicit RunLock(const std::string& directory);
  ~RunLock();
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&&) = delete;

 private:
  int fd_;
};

}  // namespace trireme
