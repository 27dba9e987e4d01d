#pragma once
#include <string>

#include "transport/memory/store.h"

namespace trireme {

// What a box holds, for the user: a line for all, and one for each region.
std::string StatusText(const MemoryStore::Facts& facts);

}  // namespace trireme
