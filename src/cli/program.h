#pragma once
#include <span>
#include <string>

#include "cli/command.h"

namespace trireme {

// Finds the command that `words` (without the program's name) begin with and runs it. Whatever is
// thrown becomes one line `trireme: error: ...` on the log's output and an exit code:
// 0 done, 1 failed, 2 wrong usage, 130 and 143 stopped by SIGINT and SIGTERM (from the command).
int RunProgram(std::span<const Command* const> commands, std::span<const std::string> words,
               Process& process) noexcept;

}  // namespace trireme
