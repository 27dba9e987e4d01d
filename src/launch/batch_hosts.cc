#include "launch/batch_hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace trireme {
namespace {

struct BatchList {
  const char* variable;  // names the file
  bool counted;          // "HOST SLOTS ...": else HOST once for each slot
};
constexpr BatchList kBatchLists[] = {
    {"PBS_NODEFILE", false}, {"LSB_DJOB_HOSTFILE", false}, {"PE_HOSTFILE", true}};

struct BatchHost {
  std::string name;
  int64_t slots = 0;
};

std::vector<BatchHost> ReadList(const std::string& file, bool counted) {
  std::vector<BatchHost> hosts;
  int number = 0;
  for (const std::string& line : Split(ReadFile(file, 64 << 20), '\n')) {
    ++number;
    const std::string words(Trim(line));
    if (words.empty()) continue;
    const std::string name = words.substr(0, words.find_first_of(" \t"));
    int64_t slots = 1;
    if (counted) {
      const std::string rest(Trim(words.substr(name.size())));
      const auto given = ParseNumber<int64_t>(rest.substr(0, rest.find_first_of(" \t")));
      if (!given || *given < 1) {
        throw Error("{}:{}: expected a host name and a number of slots, got \"{}\"", file, number,
                    words.substr(0, 80));
      }
      slots = *given;
    }
    const auto known = std::ranges::find(hosts, name, &BatchHost::name);
    if (known == hosts.end()) {
      hosts.push_back({name, slots});
    } else {
      known->slots += slots;
    }
  }
  return hosts;
}

}  // namespace

BatchHosts ReadBatchHosts(FunctionRef<const char*(const char*)> variable) {
  std::vector<std::string> names;
  for (const BatchList& list : kBatchLists) {
    names.emplace_back(list.variable);
    const char* file = variable(list.variable);
    if (file == nullptr || file[0] == '\0') continue;
    BatchHosts found{.text = "", .file = file};
    for (const BatchHost& host : ReadList(file, list.counted)) {
      found.text += fmt::format("{} {}\n", host.name, host.slots);
    }
    return found;
  }
  throw UsageError(
      "transport.hosts = \"auto\": no batch system has left a list of hosts ({}); name a hosts "
      "file",
      fmt::join(names, ", "));
}

}  // namespace trireme
