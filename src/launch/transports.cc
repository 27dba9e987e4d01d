#include "launch/transports.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>

#include "base/text.h"
#include "launch/process_run.h"
#include "launch/served_run.h"
#include "launch/shm_run.h"
#include "launch/signal_poller.h"
#include "transport/mpi/library.h"
#include "transport/mpi/world.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

int RunThreads(const TransportKind&, const LocalRanks& ranks, const PeerNeeds& needs,
               FunctionRef<int(World&)> fn) {
  const SignalPoller poller(needs.signal);
  std::atomic<int> status = 0;
  RunRanks(ranks.count, ranks.options.timeout_s, [&](World& world) {
    const int own = fn(world);
    if (world.rank() == 0) status = own;
  });
  return status;
}

int RunSharing(const TransportKind&, const LocalRanks& ranks, const PeerNeeds& needs,
               FunctionRef<int(World&)> fn) {
  return RunShm({.ranks = ranks.count,
                 .timeout_s = ranks.options.timeout_s,
                 .bytes = needs.shared_bytes,
                 .signal = needs.signal},
                fn);
}

std::unique_ptr<World> JoinByTcp(const LocalRanks& rank) { return JoinTcp(rank.tcp); }

std::unique_ptr<World> JoinByMpi(const LocalRanks& rank) {
  return JoinMpi({.plugin = rank.options.plugin,
                  .library = rank.options.mpi_library,
                  .timeout_s = rank.options.timeout_s,
                  .launched = rank.launched});
}

std::vector<std::string> StartByMpirun(int ranks) {
  RequireMpiPlugin();
  // More ranks than processors may be, none of them bound to one: in Open MPI's words, which other
  // libraries do not read.
  return {"env",
          "OMPI_MCA_rmaps_base_oversubscribe=1",
          "OMPI_MCA_hwloc_base_binding_policy=none",
          "mpirun",
          "-n",
          std::to_string(ranks)};
}

// Where a recipe leaves the choice open, the first that can do it is taken.
constexpr TransportKind kKinds[] = {
    {.name = "threads",
     .help = "threads of this process",
     .one_process = true,
     .shares_memory = true,
     .run = RunThreads},
    {.name = "shm",
     .help = "processes of this machine that share memory",
     .shares_memory = true,
     .links = "TCP on loopback",
     .run = RunSharing,
     .run_served = RunServers},
    {.name = "tcp",
     .help = "sockets, also between machines",
     .meets = true,
     .emulates_link = true,
     .run = RunProcesses,
     .run_served = RunServers,
     .join = JoinByTcp},
    {.name = "mpi",
     .help = "the MPI that started them",
     .gives_memory = true,
     .launcher = StartByMpirun,
     .join = JoinByMpi},
};

}  // namespace

std::span<const TransportKind> TransportKinds() { return kKinds; }

const TransportKind* FindTransport(std::string_view name) {
  for (const TransportKind& kind : kKinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

std::string TransportText(const TransportOptions& options, bool served) {
  const TransportKind* const kind = FindTransport(options.name);
  std::string text = fmt::format("{} over {}", Counted(options.ranks, "rank"), options.name);
  if (served && kind && kind->links) {
    text += fmt::format(" (between the server and its clients: {})", kind->links);
  }
  return text;
}

}  // namespace trireme
