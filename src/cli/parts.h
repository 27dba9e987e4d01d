#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// Something that a machine may lack.
struct Part {
  std::string name;
  std::vector<std::string> found;  // files and devices; empty: not here
  std::string use;                 // what this version does with it, or how to get it
};

std::vector<Part> FindParts();

// The first of `folders` (as in PATH, divided by colons) that holds an executable file `program`.
std::string FindProgram(std::string_view program, std::string_view folders);

}  // namespace trireme
