#include "cli/build_facts.h"

#include <fmt/format.h>
#include <gnu/libc-version.h>

#include "base/version.h"
#include "cli/glibc_wanted.h"
#include "engine/engines.h"

namespace trireme {
namespace {

std::string Compiler() {
#ifdef __clang__
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

}  // namespace

BuildFacts ReadBuildFacts() {
  BuildFacts facts{Compiler(), GlibcWanted(), gnu_get_libc_version(), {}, Libraries()};
  for (const EngineKind& kind : EngineKinds()) {
    if (!kind.built) continue;
    for (std::string& name : kind.built()) facts.instruction_sets.push_back(std::move(name));
  }
  return facts;
}

std::string BuildFactsText(const BuildFacts& facts) {
  std::vector<std::string> libraries;
  for (const Library& library : facts.libraries) {
    libraries.push_back(fmt::format("{} {}", library.name, library.version));
  }
  const auto row = [](std::string_view name, std::string_view value) {
    return fmt::format("  {:<16}  {}\n", name, value);
  };
  return row("commit", fmt::format("{} of {}", Commit(), CommitDate())) +
         row("compiler", facts.compiler) +
         row("glibc", fmt::format("{} or later; here {}", facts.glibc_wanted, facts.glibc_found)) +
         row("instruction sets", fmt::format("{}", fmt::join(facts.instruction_sets, ", "))) +
         row("libraries", fmt::format("{}", fmt::join(libraries, ", ")));
}

Json BuildFactsJson(const BuildFacts& facts) {
  Json libraries = Json::Object();
  for (const Library& library : facts.libraries) libraries.Add(library.name, library.version);
  Json sets = Json::Array();
  for (const std::string& set : facts.instruction_sets) sets.Append(set);
  Json json = Json::Object();
  json.Add("compiler", facts.compiler).Add("glibc_wanted", facts.glibc_wanted);
  json.Add("glibc_found", facts.glibc_found).Add("instruction_sets", std::move(sets));
  json.Add("libraries", std::move(libraries));
  return json;
}

}  // namespace trireme
