#pragma once
#include <string>
#include <vector>

#include "base/log.h"

namespace trireme {

// Files that are not used, each named once; many of them only counted.
void SayLeftOut(const Log& log, const std::vector<std::string>& messages);

// What may be wrong with the data.
void SayNotes(const Log& log, const std::vector<std::string>& notes);

}  // namespace trireme
