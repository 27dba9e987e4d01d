// What a run would find on this machine.
#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/cores.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/version.h"
#include "cli/build_facts.h"
#include "cli/command.h"
#include "cli/parts.h"
#include "engine/engines.h"
#include "transport/launched.h"
#include "transport/mpi/library.h"

namespace trireme {
namespace {

struct MpiPlugin {
  std::string path;      // empty: there is none
  std::string library;   // empty: it does not load
  std::string why;       // the library fits, and where it was found; empty: the plugin names it
  std::string starters;  // what starts its ranks
  std::string problem;
};

struct Findings {
  Machine machine;
  Cores cores;
  std::vector<Part> parts;
  std::optional<Launched> launched;
  std::string launch_problem;  // variables that make no sense
  MpiPlugin plugin;
};

void FindLaunch(Findings& all) {
  try {
    all.launched = FindLauncher([](const char* name) { return std::getenv(name); });
  } catch (const Error& error) {
    all.launch_problem = error.what();
  }
  try {
    const std::string_view launcher = all.launched ? all.launched->launcher : std::string_view();
    all.plugin.path = FindMpiPlugin("", std::getenv("TRIREME_MPI_PLUGIN"), launcher);
    if (all.plugin.path.empty()) {
      RequireMpiPlugin();
      all.plugin.path = "built in";
    }
    const MpiLibrary library = OpenMpi({.launcher = launcher});
    all.plugin = {.path = library.path(),
                  .library = library.Name(),
                  .why = library.why(),
                  .starters = std::string(library.Starters())};
  } catch (const Error& error) {
    all.plugin.problem = error.what();
  }
}

Findings Examine() {
  Findings all{.machine = ReadMachine(), .cores = UsableCores(ReadCoreFacts())};
  // First: to look for parts loads libraries, which may not be those of the job's MPI.
  FindLaunch(all);
  all.parts = FindParts();
  return all;
}

std::string MemoryText(const Machine& machine) {
  if (machine.memory_bytes == 0) return "unknown (no /proc/meminfo)";
  std::string text = fmt::format("{}, {} available", FormatBytes(machine.memory_bytes),
                                 FormatBytes(machine.memory_available_bytes));
  if (machine.memory_limit_bytes) {
    text += fmt::format(", this job may use {} (cgroup)", FormatBytes(*machine.memory_limit_bytes));
  }
  return text;
}

std::string CachesText(const Machine& machine) {
  std::vector<std::string> caches;
  for (const Cache& cache : machine.caches) {
    caches.push_back(fmt::format(
        "L{}{} {}{}", cache.level, cache.type == "unified" ? "" : fmt::format(" {}", cache.type),
        FormatBytes(cache.bytes),
        cache.shared_by > 1 ? fmt::format(" (shared by {} processors)", cache.shared_by) : ""));
  }
  return caches.empty() ? "unknown" : fmt::format("{}", fmt::join(caches, ", "));
}

std::string LauncherText(const Findings& all) {
  if (!all.launch_problem.empty()) return all.launch_problem;
  if (!all.launched) return "none: this process was started by hand";
  const Launched& launched = *all.launched;
  return fmt::format("{}: rank {} of {}", launched.launcher, launched.rank,
                     launched.size ? std::to_string(*launched.size) : "an unknown number");
}

std::string PluginText(const MpiPlugin& plugin) {
  if (plugin.path.empty()) return "none";
  if (plugin.library.empty()) return plugin.problem;
  const std::string why = plugin.why.empty() ? "" : fmt::format(" ({})", plugin.why);
  return fmt::format("{}: {}{}", plugin.path, plugin.library, why);
}

// The first line, and further ones about devices of its own.
std::vector<std::string> EngineLines(const EngineKind& kind) {
  if (const std::string missing = kind.Missing(); !missing.empty()) return {missing};
  if (kind.details) return kind.details();
  const std::vector<std::string> targets = kind.targets();
  const std::string others = fmt::format("{}", fmt::join(targets.begin() + 1, targets.end(), ", "));
  const std::string why_not = kind.why_not(Precision::kBf16);
  return {targets[0] + (others.empty() ? "" : " is used (also available: " + others + ")") +
          (why_not.empty() ? ", supports bf16" : ", no bf16: " + why_not)};
}

std::string ToText(const Findings& all) {
  const Machine& machine = all.machine;
  const auto row = [](std::string_view name, std::string_view value) {
    return fmt::format("  {:<13}  {}\n", name, value);
  };
  std::string text = fmt::format("trireme {} on {} ({}, {})\n\n", BuildText(), machine.host,
                                 machine.kernel, machine.architecture);
  text += row("processor", machine.cpu_model.empty() ? "unknown" : machine.cpu_model);
  for (const EngineKind& kind : EngineKinds()) {
    std::string name = fmt::format("engine {}", kind.name);
    for (const std::string& line : EngineLines(kind)) {
      text += row(name, line);
      name.clear();
    }
  }
  text += row("cores", fmt::format("{} for this job: {}", all.cores.count, all.cores.why));
  text += row("memory", MemoryText(machine));
  text += row("caches", CachesText(machine));
  text += "\noptional parts\n";
  for (const Part& part : all.parts) {
    text += row(part.name, part.found.empty()
                               ? fmt::format("not found; {}", part.use)
                               : fmt::format("{}; {}", fmt::join(part.found, ", "), part.use));
  }
  text += "\nranks as processes\n";
  text += row("launcher", LauncherText(all));
  text += row("MPI plugin", PluginText(all.plugin));
  if (!all.plugin.starters.empty()) text += row("MPI launcher", all.plugin.starters);
  text += row("to build one", fmt::format("trireme doctor --write-mpi-plugin DIR, then in DIR: {}",
                                          kMpiPluginCommand));
  return text;
}

nlohmann::ordered_json LaunchedJson(const Findings& all) {
  if (!all.launch_problem.empty()) return {{"problem", all.launch_problem}};
  if (!all.launched) return nullptr;
  nlohmann::ordered_json json = {{"name", all.launched->launcher}, {"rank", all.launched->rank}};
  json["size"] = nullptr;
  if (all.launched->size) json["size"] = *all.launched->size;
  return json;
}

nlohmann::ordered_json PluginJson(const MpiPlugin& plugin) {
  if (plugin.path.empty()) return nullptr;
  if (plugin.library.empty()) return {{"path", plugin.path}, {"problem", plugin.problem}};
  return {{"path", plugin.path},
          {"library", plugin.library},
          {"why", plugin.why},
          {"started_by", plugin.starters}};
}

nlohmann::ordered_json ToJson(const Findings& all) {
  using json = nlohmann::ordered_json;
  const Machine& machine = all.machine;
  json caches = json::array();
  for (const Cache& cache : machine.caches) {
    caches.push_back({{"level", cache.level},
                      {"type", cache.type},
                      {"bytes", cache.bytes},
                      {"shared_by", cache.shared_by}});
  }
  json parts = json::object();
  for (const Part& part : all.parts) parts[part.name] = {{"found", part.found}, {"use", part.use}};
  json engines = json::object();
  for (const EngineKind& kind : EngineKinds()) {
    const std::string missing = kind.Missing();
    json row = {{"targets", kind.targets()},
                {"why_not_bf16", missing.empty() ? kind.why_not(Precision::kBf16) : missing}};
    if (kind.details && missing.empty()) row["devices"] = kind.details();
    engines[std::string(kind.name)] = std::move(row);
  }
  json memory = {{"bytes", nullptr}, {"available_bytes", nullptr}, {"limit_bytes", nullptr}};
  if (machine.memory_bytes > 0) {
    memory["bytes"] = machine.memory_bytes;
    memory["available_bytes"] = machine.memory_available_bytes;
  }
  if (machine.memory_limit_bytes) memory["limit_bytes"] = *machine.memory_limit_bytes;
  return {{"version", Version()},
          {"commit", Commit()},
          {"commit_date", CommitDate()},
          {"build", json::parse(BuildFactsJson(ReadBuildFacts()).Text())},
          {"host", machine.host},
          {"kernel", machine.kernel},
          {"architecture", machine.architecture},
          {"cpu", machine.cpu_model},
          {"simd", HostEngine().targets()},
          {"engines", engines},
          {"cores", all.cores.count},
          {"cores_why", all.cores.why},
          {"processors", all.cores.cpus},
          {"memory", memory},
          {"caches", caches},
          {"parts", parts},
          {"launcher", LaunchedJson(all)},
          {"mpi_plugin", PluginJson(all.plugin)}};
}

void WriteMpiPlugin(const std::string& folder, Output& out) {
  const MpiPluginSource source = GetMpiPluginSource();
  MakeDirectories(folder);
  ReplaceFile(folder + "/plugin.h", source.header);
  ReplaceFile(folder + "/plugin.c", source.code);
  out.Print(
      "wrote {0}/plugin.h and {0}/plugin.c; build them with the mpicc of the job's MPI:\n"
      "  cd {0} && {1}\n"
      "then move trireme-mpi.so next to the program, or set "
      "TRIREME_MPI_PLUGIN={0}/trireme-mpi.so\n",
      folder, kMpiPluginCommand);
}

int Doctor(const Args& args, Process& process) {
  if (const auto folder = args.Value("--write-mpi-plugin")) {
    WriteMpiPlugin(*folder, process.out);
    return 0;
  }
  const Findings all = Examine();
  if (args.Has("--json")) {
    // Names of hosts and files may be in any encoding; JSON may not.
    const auto replace = nlohmann::json::error_handler_t::replace;
    process.out.Print("{}\n", ToJson(all).dump(2, ' ', false, replace));
  } else {
    process.out.Write(ToText(all));
  }
  return 0;
}

constexpr Flag kFlags[] = {
    {"--json", "", "print it as one JSON object"},
    {"--write-mpi-plugin", "DIR", "write the source of the MPI plugin, for this machine's mpicc"},
};

}  // namespace

extern const Command kDoctor;
const Command kDoctor = {
    .name = "doctor",
    .summary = "print the processor, cores, memory and optional parts that a run would find",
    .usage = "trireme doctor [--json] [--write-mpi-plugin DIR]",
    .examples =
        "trireme doctor                         # what this machine offers\n"
        "trireme doctor --json                  # the same for a script\n"
        "trireme doctor --write-mpi-plugin DIR  # for an MPI that has no plugin yet",
    .flags = kFlags,
    .run = Doctor,
};

}  // namespace trireme
