// What a run would find on this machine.
#include <fmt/format.h>
#include <hwy/targets.h>

#include <nlohmann/json.hpp>

#include "base/cores.h"
#include "base/machine.h"
#include "base/version.h"
#include "cli/command.h"
#include "cli/parts.h"

namespace trireme {
namespace {

struct Findings {
  Machine machine;
  Cores cores;
  std::vector<std::string> simd;  // best first: that one is used
  std::vector<Part> parts;
};

Findings Examine() {
  Findings all{ReadMachine(), UsableCores(ReadCoreFacts()), {}, FindParts()};
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    all.simd.emplace_back(hwy::TargetName(target));
  }
  return all;
}

std::string MemoryText(const Machine& machine) {
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
        cache.shared_by > 1 ? fmt::format(" (for {} processors)", cache.shared_by) : ""));
  }
  return caches.empty() ? "not known" : fmt::format("{}", fmt::join(caches, ", "));
}

std::string ToText(const Findings& all) {
  const Machine& machine = all.machine;
  const auto row = [](std::string_view name, std::string_view value) {
    return fmt::format("  {:<13}  {}\n", name, value);
  };
  std::string text = fmt::format("trireme {} on {} ({}, {})\n\n", Version(), machine.host,
                                 machine.kernel, machine.architecture);
  text += row("processor", machine.cpu_model.empty() ? "not known" : machine.cpu_model);
  const std::string others =
      fmt::format("{}", fmt::join(all.simd.begin() + 1, all.simd.end(), ", "));
  text += row("SIMD", all.simd.size() > 1
                          ? fmt::format("{} is used (also here: {})", all.simd[0], others)
                          : all.simd[0]);
  text += row("cores", fmt::format("{} for this job: {}", all.cores.count, all.cores.why));
  text += row("memory", MemoryText(machine));
  text += row("caches", CachesText(machine));
  text += "\noptional parts\n";
  for (const Part& part : all.parts) {
    text += row(part.name, part.found.empty()
                               ? fmt::format("not found; {}", part.use)
                               : fmt::format("{}; {}", fmt::join(part.found, ", "), part.use));
  }
  return text;
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
  json memory = {{"bytes", machine.memory_bytes},
                 {"available_bytes", machine.memory_available_bytes},
                 {"limit_bytes", nullptr}};
  if (machine.memory_limit_bytes) memory["limit_bytes"] = *machine.memory_limit_bytes;
  return {{"version", Version()},
          {"host", machine.host},
          {"kernel", machine.kernel},
          {"architecture", machine.architecture},
          {"cpu", machine.cpu_model},
          {"simd", all.simd},
          {"cores", all.cores.count},
          {"cores_why", all.cores.why},
          {"processors", all.cores.cpus},
          {"memory", memory},
          {"caches", caches},
          {"parts", parts}};
}

int Doctor(const Args& args, Process& process) {
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

constexpr Flag kFlags[] = {{"--json", "", "print it as one JSON object"}};

}  // namespace

extern const Command kDoctor;
const Command kDoctor = {
    .name = "doctor",
    .summary = "print the processor, cores, memory and optional parts that a run would find",
    .usage = "trireme doctor [--json]",
    .examples =
        "trireme doctor         # what this machine offers\n"
        "trireme doctor --json  # the same for a script",
    .flags = kFlags,
    .run = Doctor,
};

}  // namespace trireme
