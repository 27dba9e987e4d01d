#pragma once
#include <filesystem>
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

// Threads for each of `members` ranks that share what these facts describe. `process_each`: each is
// a process with these facts, so that SLURM_CPUS_PER_TASK is for it alone.
int ThreadsOfEach(CoreFacts facts, int members, bool process_each);

// The processors of member `index` of `members` that share `cpus`: neighbours in the list stay
// together, and the numbers differ by one at most. Empty where there are fewer than members.
std::vector<int> ShareOf(const std::vector<int>& cpus, int index, int members);

// In an order in which those of one core, then those of one socket, are neighbours: kernels often
// number the second threads of all cores behind the first ones. `root` is where /sys is looked for.
std::vector<int> OrderByCore(std::vector<int> cpus, const std::filesystem::path& root = "/");

// While it lives, the thread that made it, and threads that this one starts, run on `cpus` only.
// Does nothing where the list is empty or the kernel refuses. The same thread destroys it.
class PinnedThread {
 public:
  explicit PinnedThread(const std::vector<int>& cpus);
  ~PinnedThread();
  PinnedThread(const PinnedThread&) = delete;
  PinnedThread& operator=(const PinnedThread&) = delete;

 private:
  std::vector<int> before_;  // empty: nothing to put back
};

// "0-3,8" as the kernel writes lists of processors; nothing for garbage.
std::optional<std::vector<int>> ParseCpuList(std::string_view text);
std::string FormatCpuList(std::vector<int> cpus);
std::optional<int> ParseSlurmCpus(const char* value);  // null: not in a Slurm job

}  // namespace trireme
