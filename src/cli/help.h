#pragma once
#include <span>
#include <string>

#include "cli/command.h"

namespace trireme {

std::string HelpOverview(std::span<const Command* const> commands);
std::string HelpOf(const Command& command);

}  // namespace trireme
