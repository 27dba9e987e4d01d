// What the program is made of, and under which terms.
#include <fmt/format.h>

#include "base/version.h"
#include "cli/command.h"
#include "cli/libraries.h"

namespace trireme {
namespace {

constexpr Place kPlaces[] = {
    {"LIBRARY", Place::kOptional, "only the license of this one (default: all of them)"}};

std::string Table() {
  std::string text = fmt::format("  {:<14} {:<11} Apache-2.0\n", "trireme", Version());
  for (const Library& library : Libraries()) {
    text += fmt::format("  {:<14} {:<11} {:<32} {}\n", library.name, library.version,
                        library.license, library.home);
  }
  return text;
}

int Run(const Args& args, Process& process) {
  const auto wanted = args.Optional("LIBRARY");
  std::vector<std::string> names = {"trireme"};  // those that are inside
  for (const Library& library : Libraries()) names.emplace_back(library.name);
  std::string text = wanted ? "" : Table();
  bool found = false;
  for (const std::string& name : names) {
    if (wanted && *wanted != name) continue;
    for (const LicenseText& license : LicenseTexts()) {
      if (license.name != name) continue;
      found = true;
      text += wanted ? std::string(license.text) : fmt::format("\n== {}\n\n{}", name, license.text);
    }
  }
  if (!found) {
    throw UsageError("there is no library {} inside{}", *wanted, DidYouMean(*wanted, names));
  }
  process.out.Write(text);
  return 0;
}

}  // namespace

extern const Command kLicenses;
const Command kLicenses = {
    .name = "licenses",
    .summary = "print the libraries inside this program and their licenses",
    .usage = "trireme licenses [LIBRARY]",
    .examples =
        "trireme licenses | head           # the list\n"
        "trireme licenses zlib\n",
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
