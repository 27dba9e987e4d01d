#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/folder_scan.h"

namespace trireme {

// What is wrong with each picture of the list that does not decode, by its place; the message
// begins with its path. All are read, on all cores; what was found is kept for the next time, by
// path, size and time of change.
struct BrokenPicture {
  size_t place = 0;
  std::string message;
};
std::vector<BrokenPicture> FindBroken(const std::string& folder, const PathList& files);

// Leaves the broken ones out of the scan and returns their messages. A class of which nothing is
// left is an Error.
std::vector<std::string> LeaveOutBroken(const std::string& folder, ScannedFolder& scan);

}  // namespace trireme
