#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/log.h"
#include "launch/transports.h"

namespace trireme {

struct MemorySetup;

// Ranks that compute on the same processors.
struct Neighbours {
  std::vector<int> ranks;     // in order; empty: all of the job
  std::vector<int> host;      // all ranks of this machine, in order; empty: those
  bool process_each = false;  // a launcher started each, with SLURM_CPUS_PER_TASK for it alone
};

// The ranks of a job, as this process sees them: it starts them (threads, processes of this
// machine), or is one of them already (mpirun, srun and the like started it).
class Launcher {
 public:
  // Resolves what [transport] leaves open, by what a launcher announced: `options.name` and
  // `.ranks` are written. `ranks_given`: the user said how many. UsageError where the two
  // contradict each other, so that no job ever trains as several worlds of one.
  Launcher(TransportOptions& options, bool ranks_given, std::optional<Launched> launched);
  ~Launcher();

  int size() const { return options_.ranks; }
  // Ranks [first, first + local) are this process, or are started by it.
  int first() const { return first_; }
  int local() const { return local_; }
  bool complete() const { return local_ == options_.ranks; }
  bool holds(int rank) const { return rank >= first_ && rank < first_ + local_; }
  // Those of this machine; where a launcher gave each its own processors, only those with the same
  // ones. Known after Join().
  const Neighbours& neighbours() const { return neighbours_; }
  bool launched() const { return joins_; }

  // Where a launcher started this process: meets the others, so that from here on an error of one
  // ends all. Else does nothing. Throws where a rank does not come. `log`: is told of long waits.
  void Join(const Log* log = nullptr);
  void Abort(std::string_view reason) noexcept;  // the joined ones
  std::string Secret() const;                    // of the run, "" for none

  // Calls `fn` on every rank that this process holds. Returns what the first of them returned, 0
  // or 2 ... 255; throws the first error.
  int Run(const PeerNeeds& needs, FunctionRef<int(World&)> fn);

  // For ranks of a free pace, which need no group: the first is the server. Where processes of this
  // program are the ranks, they have none, and those that are killed are started again (see
  // RunServerRanks). With `needs.memory` each has memory() in common with the others: in a
  // box that rank 0's process keeps, or in those of transport.memory.
  int RunServed(const ServerNeeds& needs, FunctionRef<int(World&)> fn);

 private:
  void Choose(const TransportKind* otherwise);
  void Resolve(bool ranks_given);
  void ResolveLaunched(bool ranks_given);
  void ReadHosts(bool ranks_given);
  void CheckGiven(bool ranks_given, int started) const;
  void FindNeighbours();
  int RunWithLinks(const ServerNeeds& needs, FunctionRef<int(World&)> fn);
  MemorySetup MemoryFor(const ServerNeeds& needs) const;
  LocalRanks Local(const Log* log, bool secret) const;

  TransportOptions& options_;
  const std::optional<Launched> launched_;
  const TransportKind* kind_ = nullptr;
  bool joins_ = false;  // a launcher started this process
  bool ranks_given_ = false;
  int first_ = 0, local_ = 1;
  Neighbours neighbours_;
  std::string meet_;                       // where ranks meet
  std::vector<std::string> host_of_rank_;  // by a hosts file
  bool across_hosts_ = false;
  std::unique_ptr<World> world_;  // joined
};

}  // namespace trireme
