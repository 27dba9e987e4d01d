#pragma once
#include <string>
#include <string_view>

namespace trireme {

// Whether what is written to this file is seen on a terminal that can redraw a line: TERM is set
// and not "dumb".
bool IsScreen(int fd);
// And may be coloured: NO_COLOR is not set (no-color.org).
bool ShowsColour(int fd);

enum class Ink { kRed, kYellow, kGreen, kFaint, kBold };
std::string Inked(std::string_view text, Ink ink);  // and back to what was before

// What others have named must not steer the terminal: control characters become '?', and without
// `unicode` all that is not ASCII.
std::string Printable(std::string_view text, bool unicode = true);

}  // namespace trireme
