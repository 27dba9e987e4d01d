#pragma once
#include <span>
#include <string>
#include <vector>

#include "cli/command.h"

namespace trireme {

// Pages in the language of man(7), made from the tables of the commands and of the keys.
struct ManPage {
  std::string name;  // trireme-bench-step
  int section;
  std::string text;
};
// trireme(1), a page for each command, trireme-recipe(5).
std::vector<ManPage> ManPages(std::span<const Command* const> commands);

}  // namespace trireme
