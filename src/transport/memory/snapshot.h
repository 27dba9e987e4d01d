#pragma once
#include <string>

#include "transport/memory/store.h"

namespace trireme {

// A box's regions with their versions and notes, in a file of their own for the case that the
// machine dies: then the pages of the box's file are of different moments. Each region is of one
// moment, the old snapshot stays until the new one is on the disk, and a digest tells whether the
// file is whole. Sessions and locks are not in it: whoever comes back is told that the box is
// another one.
void WriteSnapshot(MemoryStore& store, const std::string& path);

// Into an empty store. False: there is none. An Error where it is damaged, or does not fit.
bool ReadSnapshot(MemoryStore& store, const std::string& path);

}  // namespace trireme
