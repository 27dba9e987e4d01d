#pragma once
#include <string>
#include <vector>

namespace trireme {

// Something that a machine may lack.
struct Part {
  std::string name;
  std::vector<std::string> found;  // files and devices; empty: not here
  std::string use;                 // what this version does with it, or how to get it
};

std::vector<Part> FindParts();

}  // namespace trireme
