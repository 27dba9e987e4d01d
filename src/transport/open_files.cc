#include "transport/open_files.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

namespace trireme {

bool IsOutOfFiles(const std::error_code& error) {
  return error.value() == EMFILE || error.value() == ENFILE;  // Asio's category maps neither
}

std::string ErrnoWords(int number) {
  const std::error_code error(number, std::generic_category());
  return IsOutOfFiles(error) ? OutOfFiles() : std::strerror(number);
}

std::string OutOfFiles(int needed) {
  rlimit limit{};
  const bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  const std::string now = known ? fmt::format("ulimit -n is {}", limit.rlim_cur) : "ulimit -n";
  if (needed == 0) return fmt::format("too many open files ({}); raise the limit", now);
  return fmt::format("too many open files ({}); raise the limit to about {}", now, needed);
}

}  // namespace trireme
