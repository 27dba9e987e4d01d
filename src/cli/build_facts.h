#pragma once
#include <string>
#include <vector>

#include "cli/libraries.h"
#include "record/json.h"

namespace trireme {

// What this program was made of: `trireme --version --long`, `doctor --json`, starts.jsonl.
struct BuildFacts {
  std::string compiler;                       // g++ 12.2.0
  std::string glibc_wanted, glibc_found;      // 2.17, 2.36: the file's, the machine's
  std::vector<std::string> instruction_sets;  // that there is code for, best first
  std::vector<Library> libraries;
};
BuildFacts ReadBuildFacts();

std::string BuildFactsText(const BuildFacts& facts);
Json BuildFactsJson(const BuildFacts& facts);

}  // namespace trireme
