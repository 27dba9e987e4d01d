#include "cli/output.h"

#include <poll.h>
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

}  // namespace trireme
