#include "record/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace trireme {

// The file stays for ever: removing it would let two processes lock two files of the same name.
RunLock::RunLock(const std::string& directory)
    : folder_(open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  const std::string name = directory + "/" + kName;
  fd_ = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) {
    const int reason = errno;
    close(folder_);
    throw Error("{}: cannot open: {}", name, std::generic_category().message(reason));
  }
  // Only a held lock is a reason to stop: some cluster file systems have no locks at all.
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(fd_);
    close(folder_);
    throw Error("{}: another process is writing to this run", directory);
  }
}

RunLock::~RunLock() {
  if (fd_ >= 0) close(fd_);
  if (folder_ >= 0) close(folder_);
}

RunLock::RunLock(RunLock&& other) noexcept
    : folder_(std::exchange(other.folder_, -1)), fd_(std::exchange(other.fd_, -1)) {}

bool RunLock::IsAt(const std::string& directory) const {
  struct stat locked {
  }, there{};
  return fstat(folder_, &locked) == 0 && stat(directory.c_str(), &there) == 0 &&
         locked.st_dev == there.st_dev && locked.st_ino == there.st_ino;
}

}  // namespace trireme
