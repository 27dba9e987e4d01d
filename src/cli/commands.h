#pragma once
#include <span>

#include "cli/command.h"

namespace trireme {

// Every subcommand, in the order of the help.
std::span<const Command* const> AllCommands();

}  // namespace trireme
