#pragma once
#include <string>

namespace trireme {

// Whether there is something else than a pack under this name. What cannot be read is for Pack.
bool IsNoPack(const std::string& path);

// The file of FILE or pack:FILE; an Error where it is something else. People give commands for
// packs all kinds of data.
std::string PackPlace(const std::string& given);

}  // namespace trireme
