// The pages of man(1).
#include <fmt/format.h>

#include "base/files.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/man_page.h"

namespace trireme {
namespace {

constexpr Flag kFlags[] = {{"--out", "DIR", "write all pages into DIR/man1 and DIR/man5"}};
constexpr Place kPlaces[] = {
    {"PAGE", Place::kMany, "the words of a command, or recipe (default: the overview)"}};

int WriteAll(const std::vector<ManPage>& pages, const std::string& folder, Output& out) {
  for (const ManPage& page : pages) {
    const std::string section = fmt::format("{}/man{}", folder, page.section);
    MakeDirectories(section);
    ReplaceFile(fmt::format("{}/{}.{}", section, page.name, page.section), page.text);
  }
  out.Print("wrote {} pages to {}; read them with: man -M {} trireme\n", pages.size(), folder,
            folder);
  return 0;
}

int Run(const Args& args, Process& process) {
  const std::vector<ManPage> pages = ManPages(AllCommands());
  const std::vector<std::string> words = args.Many("PAGE");
  if (const auto folder = args.Value("--out")) {
    if (!words.empty()) throw UsageError("--out writes all pages; remove {}", words[0]);
    return WriteAll(pages, *folder, process.out);
  }
  std::string wanted = "trireme";
  for (const std::string& word : words) wanted += "-" + word;
  std::vector<std::string> names;
  for (const ManPage& page : pages) {
    names.push_back(page.name);
    if (page.name != wanted) continue;
    process.out.Write(page.text);
    return 0;
  }
  throw UsageError("there is no page {}{}", wanted, DidYouMean(wanted, names));
}

}  // namespace

extern const Command kMan;
const Command kMan = {
    .name = "man",
    .summary = "print a page of the manual, for man(1)",
    .usage = "trireme man [PAGE] | trireme man --out DIR",
    .examples =
        "trireme man train | man -l -          # the page of a command\n"
        "trireme man recipe | man -l -         # every key of a recipe\n"
        "trireme man --out ~/.local/share/man  # where man finds them\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
