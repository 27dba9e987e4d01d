#include "base/terminal.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>

namespace trireme {

bool IsScreen(int fd) {
  const char* term = std::getenv("TERM");
  return isatty(fd) == 1 && term && *term && std::string_view(term) != "dumb";
}

bool ShowsColour(int fd) {
  const char* forbidden = std::getenv("NO_COLOR");
  return IsScreen(fd) && (!forbidden || !*forbidden);
}

std::string Inked(std::string_view text, Ink ink) {
  constexpr int kCodes[] = {31, 33, 32, 2, 1};
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[int(ink)], text);
}

}  // namespace trireme
