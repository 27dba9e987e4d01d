#pragma once
#include <string>
#include <vector>

namespace trireme {

// runs/STEM-DATE-TIME, with a number if that is taken. Nothing is made.
std::string DatedFolder(const std::string& stem);

// The words of a command as a shell reads them.
std::string ShellLine(const std::vector<std::string>& words);

}  // namespace trireme
