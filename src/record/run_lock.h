#pragma once
#include <optional>
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

  // Whether `directory` is still the folder that was locked: not removed, moved or replaced.
  bool IsAt(const std::string& directory) const;

  // Whether a process of this machine, or of any where the file system hands locks on, holds it;
  // nothing where there are no locks. For readers: nobody is kept out by the question.
  static std::optional<bool> IsHeld(const std::string& directory);

 private:
  int folder_ = -1;  // open as long as the lock is held: its inode cannot become another's
  int fd_ = -1;
};

}  // namespace trireme
