// Fetches a well-known data set, checked, to where --data finds it.
#include <cstdlib>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/command.h"
#include "data/get/get.h"

namespace trireme {
namespace {

constexpr Flag kFlags[] = {
    {"--to", "DIR", "the folder to write (default: NAME in $TRIREME_DATA or the user's cache)"},
    {"--from", "PATH", "the file or folder of files that was fetched elsewhere: no network"},
};
constexpr Place kPlaces[] = {
    {"NAME", Place::kOptional, "mnist, fashion-mnist, cifar10, ...; without it: a list"}};

void PrintOffered(Output& out) {
  for (const OfferedData& data : OfferedDataSets()) {
    const std::string folder = FetchedFolder(data.name);
    out.Print("  {:<14}  {}{}\n", data.name, data.help, folder.empty() ? "" : "; in " + folder);
  }
}

int Run(const Args& args, Process& process) {
  const auto variable = [](const char* name) -> const char* { return std::getenv(name); };
  const auto name = args.Optional("NAME");
  if (!name) {
    PrintOffered(process.out);
    return 0;
  }
  const OfferedData& data = FindOffered(*name);
  const Log log(process.log);
  GetNeeds needs;
  if (const auto to = args.Value("--to")) {
    needs.folder = *to;
    while (needs.folder.size() > 1 && needs.folder.ends_with('/')) needs.folder.pop_back();
  } else if (const std::string home = DataHome(variable); !home.empty()) {
    needs.folder = fmt::format("{}/{}", home, data.name);
  } else {
    throw UsageError("neither TRIREME_DATA nor HOME is set; say where the data go: --to DIR");
  }
  needs.from = args.Value("--from").value_or("");
  const char* folders = variable("PATH");
  needs.tool = FindDownloadTool(folders != nullptr ? folders : "");
  needs.say = [&](const std::string& words) { log.Info("data", "{}", words); };
  needs.live = [&](const std::string& words) { process.log.ShowLive(words); };
  const bool fetched = GetData(data, needs);
  process.log.ShowLive("");
  const bool found = !args.Value("--to");  // by its name alone
  const std::string source =
      found && !data.source.ends_with(':')
          ? std::string(data.source)
          : fmt::format("{}{}{}", data.source, data.source.ends_with(':') ? "" : ":", needs.folder);
  process.out.Print("{} {} {}; use it with --data {}\n", data.name,
                    fetched ? "is now in" : "was already in", needs.folder, source);
  return 0;
}

}  // namespace

extern const Command kDataGet;
const Command kDataGet = {
    .name = "data get",
    .summary = "fetch a well-known data set, and check it",
    .usage = "trireme data get [NAME] [--to DIR] [--from PATH]",
    .examples =
        "trireme data get                          # what can be fetched\n"
        "trireme data get mnist                    # then: trireme train --data mnist\n"
        "trireme data get cifar10 --from FILE      # a file that was fetched elsewhere\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
