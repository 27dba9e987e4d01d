#pragma once
#include <string>

namespace trireme {

// Unpacks a .tar.gz or .tar below `into`, which exists. What came from a network is not trusted: an
// entry with "..", an absolute path, a link or a device is an Error that names it.
void Untar(const std::string& archive, const std::string& into);

}  // namespace trireme
