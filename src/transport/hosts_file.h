#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// One line of a hosts file: `NAME [RANKS]`, as in `node7 4`. `#` begins a comment.
struct HostLine {
  std::string name;
  int ranks = 1;
};

// Throws an Error that names file and line.
std::vector<HostLine> ParseHosts(std::string_view text, const std::string& file);

// Where in the list this machine stands: by its host name (with or without domain) or one of its
// addresses. -1: nowhere.
int FindOwnLine(const std::vector<HostLine>& hosts, const std::vector<std::string>& own_names);
std::vector<std::string> OwnNames();  // host name, and the addresses of all interfaces

}  // namespace trireme
