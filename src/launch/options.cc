#include "launch/options.h"

#include <fmt/format.h>

#include <vector>

#include "launch/memory_world.h"
#include "launch/transports.h"

namespace trireme {

void Describe(OptionTable<TransportOptions>& t) {
  using enum Binds;
  std::vector<std::string> names{kAutoTransport};
  std::string help;
  for (const TransportKind& kind : TransportKinds()) {
    help += fmt::format("{}{} ({})", help.empty() ? "" : ", ", kind.name, kind.help);
    names.push_back(kind.name);
  }
  t.Add("name", &TransportOptions::name, OneOf(names), kNothing,
        fmt::format("how ranks communicate: {}; auto: mpi under mpirun, tcp under srun, under "
                    "torchrun and with transport.hosts, otherwise threads",
                    help));
  t.Add("ranks", &TransportOptions::ranks, AtLeast(1) && AtMost(1024), kNothing,
        "number of ranks, servers included; under mpirun, srun and torchrun the number of "
        "processes that they started");
  t.Add("join_s", &TransportOptions::join_s, Above(0), kNothing,
        "tcp: seconds that ranks wait for one another at the start");
  t.Add("timeout_s", &TransportOptions::timeout_s, Above(0), kNothing,
        "seconds after which a silent rank counts as lost");
  t.Add("meet", &TransportOptions::meet, Any(), kLocal,
        "tcp: HOST:PORT of rank 0, if neither a launcher nor transport.hosts says it");
  t.Add("hosts", &TransportOptions::hosts, Any(), kLocal,
        "tcp: a file with one line `HOST [RANKS]` per machine; the first host may have a port "
        "(`HOST:PORT`); auto: the list of the batch system (PBS, LSF, Grid Engine); start the same "
        "command on each machine");
  t.Add("bind", &TransportOptions::bind, Any(), kLocal,
        "tcp: the address that this machine listens on; empty: 127.0.0.1 for ranks of one machine, "
        "all addresses otherwise");
  t.Add("listen", &TransportOptions::listen, Any(), kLocal,
        "strategies with a server, over tcp or shm: ADDRESS:PORT where the server listens for "
        "clients, including `trireme join`; empty: a free port of 127.0.0.1");
  t.Add("memory", &TransportOptions::memory, Any(), kLocal,
        "strategy.centre memory: HOST:PORT of the memory box (`trireme memory-box`) that keeps the "
        "weights, or of several, separated by commas, each with a stripe of them; empty: rank 0's "
        "process keeps a box, which ranks of other machines find at the port after rank 0's");
  std::vector<std::string> ways;
  for (const MemoryWayKind& kind : kMemoryWays) ways.push_back(kind.name);
  t.Add(
      "memory_way", &TransportOptions::memory_way, OneOf(ways), kLocal,
      "how long values reach the boxes of transport.memory: tcp, fabric (what `trireme memory-box "
      "--fabric` offers), or auto: the faster of what there is, by measurement");
  t.Add("secret_file", &TransportOptions::secret_file, Any(), kLocal,
        "tcp: a file with the secret that ranks of other machines must know; empty: the "
        "environment variable TRIREME_SECRET");
  t.Add("throttle", &TransportOptions::throttle, AtLeast(0), kNothing,
        "tcp: limit in bytes per second for each rank and direction, for experiments; 0: no limit");
  t.Add("latency_ms", &TransportOptions::latency_ms, AtLeast(0) && AtMost(10000), kNothing,
        "tcp: delay in milliseconds of all that reaches a rank, for experiments");
  t.Add("plugin", &TransportOptions::plugin, Any(), kNothing,
        "mpi: path of the plugin; empty: the one beside the program, else the one inside it for "
        "this machine's MPI (`trireme doctor`)");
  t.Add("mpi_library", &TransportOptions::mpi_library, Any(), kLocal,
        "mpi: the file of this machine's MPI library, for the plugins inside the program; empty: "
        "TRIREME_MPI_LIBRARY, or what is found");
}

}  // namespace trireme
