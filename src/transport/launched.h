#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "transport/address.h"

namespace trireme {

// What a launcher told the process that it started. Where it says nothing, there is nothing.
struct Launched {
  std::string launcher;  // "trireme", "torchrun", "Open MPI", "MPICH (PMI)", "Slurm", "PMIx", ...
  int rank = 0;
  std::optional<int> size;
  std::optional<int> local_rank, local_size;  // among those on this host
  std::vector<std::string> hosts;             // Slurm: of the step; rank 0 runs on the first
  int port = kPort;                           // that the ranks may take there
  bool mpi = false;                           // it starts programs of MPI
  std::optional<int> cpus_per_task;           // Slurm
  bool alone() const { return size == 1; }    // not known is not alone
  std::string meet;                           // TRIREME_MEET: where the ranks of tcp meet
};

// The launcher of this process; nothing: started by hand. Where launchers are nested, the
// innermost. `variable` gives the text of an environment variable or null, as std::getenv does.
// Variables that make no sense are an Error that names them.
std::optional<Launched> FindLauncher(FunctionRef<const char*(const char* name)> variable);

// Slurm's short form of host names: "n[1-3,07-09],m2" are n1, n2, n3, n07, n08, n09, m2.
std::vector<std::string> ExpandHosts(std::string_view list);

// Slurm's short form of numbers per node: "2(x3),1" are 2, 2, 2, 1.
std::vector<int> ExpandCounts(std::string_view list);

}  // namespace trireme
