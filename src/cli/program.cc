#include "cli/program.h"

#include <fmt/format.h>

#include <new>
#include <system_error>
#include <vector>

#include "base/version.h"
#include "cli/build_facts.h"
#include "cli/help.h"

namespace trireme {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

struct Found {
  const Command* command;
  std::span<const std::string> rest;  // the words behind its name
};

// Those of two words whose first one is this.
std::vector<const Command*> FamilyOf(std::span<const Command* const> commands,
                                     const std::string& word) {
  std::vector<const Command*> family;
  for (const Command* command : commands) {
    if (command->name.starts_with(word + " ")) family.push_back(command);
  }
  return family;
}

Found FindCommand(std::span<const Command* const> commands, std::span<const std::string> words) {
  for (const size_t length : {size_t{2}, size_t{1}}) {  // "bench allreduce" before "bench"
    if (words.size() < length) continue;
    const std::string name = length == 2 ? words[0] + " " + words[1] : words[0];
    for (const Command* command : commands) {
      if (command->name == name) return {command, words.subspan(length)};
    }
  }
  const std::vector<const Command*> family = FamilyOf(commands, words[0]);
  if (!family.empty()) {
    std::vector<std::string_view> names;
    for (const Command* command : family) names.push_back(command->name);
    const std::string list = fmt::format("{}", fmt::join(names, ", "));
    if (words.size() == 1 || words[1].starts_with('-')) {
      throw UsageError("{} needs a second word: {}", words[0], list);
    }
    throw UsageError("unknown command {}; there {} {}", QuoteToml(words[0] + " " + words[1]),
                     names.size() == 1 ? "is" : "are", list);
  }
  std::vector<std::string> names = {"help"};
  for (const Command* command : commands) names.emplace_back(command->name);
  throw UsageError("unknown command {}{}", QuoteToml(words[0]), DidYouMean(words[0], names));
}

// For a flag before any command.
std::string UnknownFlag(std::span<const Command* const> commands, const std::string& word) {
  const std::string flag = word.substr(0, word.find('='));
  for (const Command* command : commands) {
    for (const Flag& known : command->flags) {
      if (known.name == flag) {
        return fmt::format("put flags after the command, as in: trireme {} {}", command->name,
                           word);
      }
    }
  }
  return fmt::format("unknown flag {}", flag);
}

bool IsHelp(const std::string& word) { return word == "--help" || word == "-h"; }

bool AsksForHelp(std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (IsHelp(word)) return true;
  }
  return false;
}

int Dispatch(std::span<const Command* const> commands, std::span<const std::string> words,
             Process& process, const Command*& running) {
  const bool help = !words.empty() && (words[0] == "help" || IsHelp(words[0]));
  if (words.empty() || (help && words.size() == 1)) {
    process.out.Write(HelpOverview(commands));
    return 0;
  }
  if (words[0] == "--version") {
    process.out.Print("trireme {}\n", BuildText());
    if (words.size() > 1 && words[1] == "--long") {
      process.out.Write(BuildFactsText(ReadBuildFacts()));
    }
    return 0;
  }
  if (words[0].starts_with('-') && !help) {
    throw UsageError("{}", UnknownFlag(commands, words[0]));
  }
  const std::span<const std::string> asked = help ? words.subspan(1) : words;
  const std::vector<const Command*> family = FamilyOf(commands, asked[0]);
  if (!family.empty() && (help ? asked.size() == 1 : asked.size() > 1 && IsHelp(asked[1]))) {
    process.out.Write(HelpOverview(family));
    return 0;
  }
  const Found found = FindCommand(commands, asked);
  if (help || AsksForHelp(found.rest)) {
    process.out.Write(HelpOf(*found.command));
    return 0;
  }
  running = found.command;
  return found.command->run(Args(running->flags, running->places, found.rest), process);
}

// An error may have a list, whose lines are indented; anything else stays one line.
int Fail(Process& process, int code, std::string_view what) {
  process.log.ShowLive("");
  constexpr std::string_view kWho = "trireme: ", kMark = "error: ", kBorder = "\n  ";
  size_t end = what.find(kBorder);
  process.log.Line(fmt::format("{}{}{}", kWho, kMark, what.substr(0, end)),
                   {kWho.size(), kMark.size(), Ink::kRed});
  while (end != what.npos) {
    what.remove_prefix(end + 1);
    end = what.find(kBorder);
    process.log.Line(what.substr(0, end));
  }
  return code;
}

}  // namespace

int RunProgram(std::span<const Command* const> commands, std::span<const std::string> words,
               Process& process) noexcept {
  const Command* running = nullptr;
  try {
    return Dispatch(commands, words, process, running);
  } catch (const UsageError& e) {
    Fail(process, kWrongUsage, e.what());
    const std::string command = running == nullptr ? "" : fmt::format("{} ", running->name);
    process.log.Line(fmt::format("trireme: try: trireme {}--help", command));
    return kWrongUsage;
  } catch (const Error& e) {
    return Fail(process, kFailed, e.what());
  } catch (const std::bad_alloc&) {
    return Fail(process, kFailed,
                "out of memory; use a smaller model or trainer.batch (--dry-run shows the plan)");
  } catch (const std::system_error& e) {
    if (e.code() != std::errc::resource_unavailable_try_again) {
      return Fail(process, kFailed, fmt::format("unexpected: {}", e.what()));
    }
    // A thread that a library starts, as asio does to look up a host's name.
    return Fail(
        process, kFailed,
        fmt::format(
            "cannot start a thread: {} (check ulimit -u, ulimit -v and the cgroup's pids.max)",
            e.code().message()));
  } catch (const std::exception& e) {
    return Fail(process, kFailed, fmt::format("unexpected: {}", e.what()));
  } catch (...) {
    return Fail(process, kFailed, "unexpected: an exception of unknown type");
  }
}

}  // namespace trireme
