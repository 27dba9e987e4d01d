#include "transport/crew.h"

#include <atomic>

#include "transport/shm/run.h"
#include "transport/threads/run.h"

namespace trireme {

int Crew::Run(const Needs& needs, FunctionRef<int(World&)> fn) {
  if (options_.name == "shm") {
    return RunShm({.ranks = options_.ranks,
                   .timeout_s = options_.timeout_s,
                   .bytes = needs.shared_bytes,
                   .signal = needs.signal},
                  fn);
  }
  std::atomic<int> status = 0;
  RunRanks(options_.ranks, options_.timeout_s, [&](World& world) {
    const int own = fn(world);
    if (world.rank() == 0) status = own;
  });
  return status;
}

}  // namespace trireme
