#pragma once
#include <memory>
#include <optional>
#include <string>

#include "transport/launched.h"
#include "transport/world.h"

namespace trireme {

struct MpiSetup {
  std::string plugin;                // path; empty: see OpenMpi
  std::string library = {};          // of the machine's MPI, where somebody named it
  double timeout_s = 60;             // transport.timeout_s
  std::optional<Launched> launched;  // what the launcher announced: MPI must agree
  size_t piece_bytes = size_t{1} << 30;
};

// Makes this process a rank of its MPI job, once. A world that is destroyed in good order waits for
// the others (MPI_Finalize). After an error (a lost rank, Abort, an exception that passes through)
// it tells them, and the end of the process ends the job with MPI_Abort: print the error before.
std::unique_ptr<World> JoinMpi(const MpiSetup& setup);

}  // namespace trireme
