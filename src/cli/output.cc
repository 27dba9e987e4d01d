#include "cli/output.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/text.h"

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

std::string Printable(std::string_view text, bool unicode) {
  std::string out;
  for (const char c : text) {
    const bool control = uint8_t(c) < 0x20 || c == 0x7F;
    const bool wide = uint8_t(c) >= 0x80;
    out += control || (wide && !unicode) ? '?' : c;
  }
  return unicode && !IsUtf8(out) ? Printable(out, false) : out;
}

}  // namespace trireme
