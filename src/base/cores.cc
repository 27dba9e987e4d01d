#include "base/cores.h"

#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <thread>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "base/cgroup.h"
#include "base/proc_file.h"
#include "base/text.h"

namespace trireme {
namespace {

constexpr int kMostCpus = 1 << 16;  // more than any kernel is built for

std::vector<int> AffinityMask() {
  // The kernel refuses a mask that is shorter than its own.
  for (int capacity = 1024; capacity <= kMostCpus; capacity *= 2) {
    cpu_set_t* set = CPU_ALLOC(capacity);
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(capacity);
    CPU_ZERO_S(bytes, set);
    const int failed = sched_getaffinity(0, bytes, set) == 0 ? 0 : errno;
    std::vector<int> cpus;
    for (int cpu = 0; failed == 0 && cpu < capacity; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, set)) cpus.push_back(cpu);
    }
    CPU_FREE(set);
    if (failed == 0) return cpus;
    if (failed != EINVAL) break;
  }
  return {};
}

bool SetAffinityMask(const std::vector<int>& cpus) {
  const int capacity = *std::max_element(cpus.begin(), cpus.end()) + 1;
  cpu_set_t* set = CPU_ALLOC(capacity);
  if (set == nullptr) return false;
  const size_t bytes = CPU_ALLOC_SIZE(capacity);
  CPU_ZERO_S(bytes, set);
  for (const int cpu : cpus) CPU_SET_S(cpu, bytes, set);
  const bool done = sched_setaffinity(0, bytes, set) == 0;
  CPU_FREE(set);
  return done;
}

std::string Processors(double count) {
  return fmt::format("{} processor{}", count, count == 1 ? "" : "s");
}

}  // namespace

CoreFacts ReadCoreFacts() {
  CoreFacts facts;
  facts.affinity = AffinityMask();
  facts.cgroup_cpus = ReadCgroupLimits().cpus;
  facts.slurm_cpus = ParseSlurmCpus(std::getenv("SLURM_CPUS_PER_TASK"));
  return facts;
}

Cores UsableCores(const CoreFacts& facts) {
  Cores cores;
  cores.cpus = facts.affinity;
  cores.count = static_cast<int>(facts.affinity.size());
  cores.why = fmt::format("affinity mask of {}", Processors(cores.count));
  if (cores.count == 0) {
    cores.count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    cores.why = "no affinity mask; all processors of the machine";
  }
  if (facts.cgroup_cpus && *facts.cgroup_cpus < cores.count) {
    // Rounded down: a thread too many is stopped by the kernel in the middle of a step.
    cores.count = std::max(1, static_cast<int>(*facts.cgroup_cpus));
    cores.why = fmt::format("cgroup quota of {}", Processors(*facts.cgroup_cpus));
  }
  if (facts.slurm_cpus && *facts.slurm_cpus < cores.count) {
    cores.count = *facts.slurm_cpus;
    cores.why = fmt::format("SLURM_CPUS_PER_TASK={}", cores.count);
  }
  return cores;
}

int ThreadsOfEach(CoreFacts facts, int members, bool process_each) {
  const auto own = process_each ? std::exchange(facts.slurm_cpus, std::nullopt) : std::nullopt;
  const int share = UsableCores(facts).count / members;
  return std::max(1, std::min(share, own.value_or(share)));
}

std::vector<int> ShareOf(const std::vector<int>& cpus, int index, int members) {
  TRIREME_ASSERT(index >= 0 && index < members);
  const auto begin_of = [&](int member) {
    return cpus.begin() + int64_t(cpus.size()) * member / members;
  };
  if (cpus.size() < size_t(members)) return {};
  return {begin_of(index), begin_of(index + 1)};
}

std::vector<int> OrderByCore(std::vector<int> cpus, const std::filesystem::path& root) {
  using Place = std::tuple<int, int, int>;  // socket, core, processor
  std::vector<Place> places;
  for (const int cpu : cpus) {
    const auto folder = root / fmt::format("sys/devices/system/cpu/cpu{}/topology", cpu);
    const auto number = [&](const char* file) {
      return ParseNumber<int>(Trim(ReadProcFile(folder / file).value_or(""))).value_or(0);
    };
    places.emplace_back(number("physical_package_id"), number("core_id"), cpu);
  }
  std::sort(places.begin(), places.end());
  std::transform(places.begin(), places.end(), cpus.begin(),
                 [](const Place& place) { return std::get<2>(place); });
  return cpus;
}

PinnedThread::PinnedThread(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  std::vector<int> before = AffinityMask();
  if (!before.empty() && SetAffinityMask(cpus)) before_ = std::move(before);
}

PinnedThread::~PinnedThread() {
  if (!before_.empty()) SetAffinityMask(before_);
}

std::string FormatCpuList(std::vector<int> cpus) {
  std::sort(cpus.begin(), cpus.end());
  std::string text;
  for (size_t i = 0, end = 0; i < cpus.size(); i = end) {
    for (end = i + 1; end < cpus.size() && cpus[end] == cpus[end - 1] + 1;) ++end;
    const char* comma = text.empty() ? "" : ",";
    text += end - i == 1 ? fmt::format("{}{}", comma, cpus[i])
                         : fmt::format("{}{}-{}", comma, cpus[i], cpus[end - 1]);
  }
  return text;
}

std::optional<std::vector<int>> ParseCpuList(std::string_view text) {
  std::vector<int> cpus;
  text = Trim(text);
  if (text.empty()) return cpus;
  for (const std::string& part : Split(text, ',')) {
    const size_t dash = part.find('-');
    const auto first = ParseNumber<int>(part.substr(0, dash));
    const auto last = dash == part.npos ? first : ParseNumber<int>(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= kMostCpus) return std::nullopt;
    if (cpus.size() + static_cast<size_t>(*last - *first) >= kMostCpus) return std::nullopt;
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::optional<int> ParseSlurmCpus(const char* value) {
  if (value == nullptr) return std::nullopt;
  const auto cpus = ParseNumber<int>(value);
  return cpus && *cpus > 0 ? cpus : std::nullopt;
}

}  // namespace trireme
