#include "base/terminal.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "base/text.h"

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
