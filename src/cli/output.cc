#include "cli/output.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace trireme {

void Output::Write(std::string_view text) {
  while (!text.empty() && !reader_gone_) {
    const ssize_t written = ::write(fd_, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EPIPE) {
      reader_gone_ = true;
    } else if (errno == EAGAIN) {
      pollfd ready{fd_, POLLOUT, 0};
      ::poll(&ready, 1, /*ms=*/-1);
    } else if (errno != EINTR) {
      throw OutputError("cannot write the output: {}", std::strerror(errno));
    }
  }
}

bool Output::Is(const std::string& path) const {
  struct stat named, own;
  if (path == "-") return true;
  return ::stat(path.c_str(), &named) == 0 && ::fstat(fd_, &own) == 0 &&
         named.st_dev == own.st_dev && named.st_ino == own.st_ino;
}

}  // namespace trireme
