#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace trireme {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

// Two columns; the second begins where the widest first ends.
std::string Columns(const Rows& rows) {
  size_t width = 0;
  for (const auto& [left, right] : rows) width = std::max(width, left.size());
  std::string text;
  for (const auto& [left, right] : rows) {
    text += fmt::format("  {:<{}}  {}\n", left, width, right);
  }
  return text;
}

// Commands with what they do after #, which is in one column where they are not too long.
std::string Examples(const std::vector<std::string>& lines) {
  constexpr size_t kLong = 64;
  size_t width = 0;
  Rows rows;
  for (const std::string& line : lines) {
    const size_t comment = line.find(" # ");
    const std::string command(Trim(line.substr(0, comment)));
    rows.emplace_back(command, comment == line.npos ? "" : line.substr(comment + 1));
    const bool aligned = !rows.back().second.empty() && command.size() <= kLong;
    if (aligned) width = std::max(width, command.size());
  }
  std::string text;
  for (const auto& [command, comment] : rows) {
    text += comment.empty() ? fmt::format("  {}\n", command)
                            : fmt::format("  {:<{}}  {}\n", command, width, comment);
  }
  return text;
}

}  // namespace

std::string HelpOverview(std::span<const Command* const> commands) {
  constexpr size_t kMostExamples = 5;  // of the first commands; each one's help has its own
  Rows rows;
  std::vector<std::string> examples;
  for (const Command* command : commands) {
    rows.emplace_back(command->name, command->summary);
    if (examples.size() == kMostExamples) continue;
    examples.push_back(Split(Trim(command->examples), '\n').front());
  }
  return fmt::format(
      "trireme trains neural networks on one core, on all cores and on many ranks.\n\n"
      "usage: trireme COMMAND [ARGUMENTS]\n\ncommands:\n{}\nexamples:\n{}\n"
      "trireme COMMAND --help explains a command; trireme --version [--long] prints the version.\n",
      Columns(rows), Examples(examples));
}

std::string HelpOf(const Command& command) {
  std::string text =
      fmt::format("trireme {}: {}\n\nusage: {}\n", command.name, command.summary, command.usage);
  Rows rows;
  for (const Place& place : command.places) {
    rows.emplace_back(place.name, place.help);
  }
  if (!rows.empty()) text += fmt::format("\n{}", Columns(rows));
  rows.clear();
  for (const Flag& flag : command.flags) {
    rows.emplace_back(
        flag.value.empty() ? std::string(flag.name) : fmt::format("{} {}", flag.name, flag.value),
        flag.key.empty() ? std::string(flag.help) : fmt::format("{} [{}]", flag.help, flag.key));
  }
  rows.emplace_back("--help", "print this");
  return fmt::format("{}\nflags:\n{}\nexamples:\n{}", text, Columns(rows),
                     Examples(Split(Trim(command.examples), '\n')));
}

}  // namespace trireme
