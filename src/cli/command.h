#pragma once
#include <span>
#include <string_view>

#include "base/log.h"
#include "cli/args.h"
#include "cli/output.h"

namespace trireme {

// What main made and hands to the command.
struct Process {
  Output& out;     // results
  LogOutput& log;  // events and progress: Log(process.log, rank)
};

// A subcommand: one file that ends with this record, and a row in commands.cc. All of it is
// constant data, so tables (`constexpr Flag kFlags[] = ...`) stand beside it.
struct Command {
  std::string_view name;      // one word, or two: "bench allreduce"
  std::string_view summary;   // one line, lower case
  std::string_view usage;     // trireme eval RUN [--data SOURCE] [--json]
  std::string_view examples;  // one command per line, with what it does behind #
  std::span<const Flag> flags = {};
  std::span<const Place> places = {};
  int (*run)(const Args& args, Process& process);  // gives the exit code
};

}  // namespace trireme
