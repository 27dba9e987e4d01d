#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "transport/address.h"

namespace trireme {

// One line of a hosts file: `HOST[:PORT] [RANKS]`, as in `node7 4`. `#` begins a comment.
struct HostLine {
  Address address;  // a port only in the first line: ranks meet there
  int ranks = 1;
  int line = 1;  // in the file
};

// Throws an Error that names file and line.
std::vector<HostLine> ParseHosts(std::string_view text, const std::string& file);

// Where in the list this machine stands: by its host name (with or without domain), localhost, or
// one of its addresses. -1: nowhere. An Error where two lines name it: the command, started once
// on each machine, would start the ranks of one of them.
int FindOwnLine(const std::vector<HostLine>& hosts, const std::vector<std::string>& own_names,
                const std::string& file);
std::vector<std::string> OwnNames();  // host name, localhost, and the addresses of all interfaces

}  // namespace trireme
