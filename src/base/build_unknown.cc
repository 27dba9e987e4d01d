// For programs that are linked without the file that cmake/build_info.cmake writes: a linker takes
// this one from the library only where nobody else has said it. So a commit costs the link of one
// program and not of every test.
#include "base/version.h"

namespace trireme {

std::string_view Version() { return TRIREME_VERSION; }
std::string_view Commit() { return "unknown"; }
std::string_view CommitDate() { return "1970-01-01"; }

}  // namespace trireme
