#include "launch/tcp_run.h"

#include <unistd.h>

#include "base/error.h"
#include "base/signals.h"
#include "transport/forked.h"

namespace trireme {

int RunTcp(const TcpRanks& ranks, FunctionRef<int(World&)> fn) {
  const auto run = [&](int local) {
    TcpSetup setup = ranks.setup;
    setup.rank += local;
    if (setup.rank != 0 && setup.listener >= 0) {
      close(setup.listener);
      setup.listener = -1;
    }
    setup.stop = [&ranks] { return ranks.signal && ranks.signal() != 0; };
    if (local != 0) setup.say = {};
    std::unique_ptr<World> world;
    try {
      world = JoinTcp(setup);
    } catch (const Interrupted& error) {
      if (setup.say) setup.say("stopped by a signal before all ranks had met");
      return Signals::ExitCodeOf(ranks.signal());
    }
    try {
      return fn(*world);
    } catch (const std::exception& error) {
      world->group().Abort(error.what());
      throw;
    }
  };
  // A dead process closes its connections, and so the others hear of it.
  const auto lost = [](int, const std::string&) {};
  return RunForked({.ranks = ranks.local,
                    .first = ranks.setup.rank,
                    .world = ranks.setup.size,
                    .run = run,
                    .lost = lost,
                    .signal = ranks.signal});
}

}  // namespace trireme
