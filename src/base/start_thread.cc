#include "base/start_thread.h"

#include "base/error.h"

namespace trireme {

void FailToStart(std::string_view who, const std::system_error& error) {
  throw Error("cannot start {}: {} (check ulimit -u, ulimit -v and the cgroup's pids.max)", who,
              error.code().message());
}

}  // namespace trireme
