#include "record/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace trireme {

// The file stays for ever: removing it would let two processes lock two files of the same name.
RunLock::RunLock(const std::string& directory) {
  const std::string name = directory + "/" + kName;
  fd_ = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) {
    throw Error("{}: cannot open: {}", name, std::generic_category().message(errno));
  }
  // Only a held lock is a reason to stop: some cluster file systems have no locks at all.
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(fd_);
    throw Error("{}: another process is writing to this run", directory);
  }
}

RunLock::~RunLock() {
  if (fd_ >= 0) close(fd_);
}

RunLock::RunLock(RunLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

}  // namespace trireme
