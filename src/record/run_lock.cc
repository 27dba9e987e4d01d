#include "record/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"

namespace trireme {
namespace {

// A reader's question (IsHeld) shares the lock for some microseconds. Who is refused for longer
// has met a writer.
bool TakesAlone(int fd) {
  for (int tries = 0; tries < 20; ++tries) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK) return true;  // some cluster file systems have no locks at all
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace

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
  if (!TakesAlone(fd_)) {
    close(fd_);
    close(folder_);
    throw Error("{}: another process is writing to this run", directory);
  }
}

RunLock::~RunLock() {
  if (fd_ >= 0) close(fd_);
  if (folder_ >= 0) close(folder_);
}

std::optional<bool> RunLock::IsHeld(const std::string& directory) {
  const int fd = open((directory + "/" + kName).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? std::optional(false) : std::nullopt;
  const bool shared = flock(fd, LOCK_SH | LOCK_NB) == 0;
  const int error = errno;
  close(fd);  // and the share is gone
  if (shared) return false;
  return error == EWOULDBLOCK ? std::optional(true) : std::nullopt;
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
