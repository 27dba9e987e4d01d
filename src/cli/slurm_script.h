#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// A word as the shell reads it back: in single quotes unless it needs none.
std::string QuoteShell(std::string_view word);
std::string QuoteShell(const std::vector<std::string>& words);  // with blanks between

// A job for sbatch that trains one run, however often it is started.
struct SlurmJob {
  std::string name;
  int nodes = 1;
  int ranks_per_node = 1;
  int cpus_per_rank = 0;                       // 0: what Slurm gives
  std::string partition, account, time, gres;  // empty: the site's default
  std::vector<std::string> options;            // further ones of sbatch: --qos=high
  std::vector<std::string> modules;            // `module load` of each
  std::string container, container_with;       // image and program; empty: none
  bool mpi = false;                            // else ranks meet at an address
  std::string mpi_kind = "pmix";               // of srun --mpi
  int grace_s = 120;                           // before the time limit
  std::string program;                         // path of trireme on the nodes
  std::string run;                             // directory
  std::vector<std::string> first_words,
      resume_words;  // `train ...` of the first start, of later ones
};

// Throws UsageError for what cannot stand in a line of sbatch or makes no job.
void CheckSlurmJob(const SlurmJob& job);
std::string SlurmScript(const SlurmJob& job);

}  // namespace trireme
