#pragma once
#include <string>

namespace trireme {

// The newest version of glibc that this program's file asks for: with an older one it does not
// start. "unknown" where the file does not say it.
std::string GlibcWanted();

}  // namespace trireme
