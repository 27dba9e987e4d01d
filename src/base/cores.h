#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// What the system says about the processors of this job.
struct CoreFacts {
  std::vector<int> affinity;          // processors that the scheduler may use for this process
  std::optional<double> cgroup_cpus;  // quota in processors
  std::optional<int> slurm_cpus;      // SLURM_CPUS_PER_TASK
};

// How many threads of computation this job was given, and by whom.
struct Cores {
  int count = 1;
  std::string why;        // affinity mask of 8 processors, cgroup quota of 3.5 processors, ...
  std::vector<int> cpus;  // the affinity mask: where threads may be pinned
};

CoreFacts ReadCoreFacts();
Cores UsableCores(const CoreFacts& facts);

// "0-3,8" as the kernel writes lists of processors; nothing for garbage.
std::optional<std::vector<int>> ParseCpuList(std::string_view text);
std::optional<int> ParseSlurmCpus(const char* value);  // null: not in a Slurm job

}  // namespace trireme
