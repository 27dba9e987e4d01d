#include "launch/process_run.h"

#include <unistd.h>

#include "base/error.h"
#include "base/signals.h"
#include "launch/loopback.h"
#include "transport/forked.h"

namespace trireme {

int RunProcesses(const TransportKind& kind, const LocalRanks& ranks, const PeerNeeds& needs,
                 FunctionRef<int(World&)> fn) {
  LoopbackPlace place;
  const TcpSetup tcp = ranks.tcp.meet.empty() ? place.In(ranks.tcp) : ranks.tcp;
  const auto run = [&](int local) {
    LocalRanks rank{.options = ranks.options, .launched = ranks.launched, .tcp = tcp};
    TcpSetup& setup = rank.tcp;
    setup.rank += local;
    if (setup.rank != 0 && setup.listener >= 0) {
      close(setup.listener);
      setup.listener = -1;
    }
    setup.stop = [&needs] { return needs.signal && needs.signal() != 0; };
    if (local != 0) setup.say = {};
    std::unique_ptr<World> world;
    try {
      world = kind.join(rank);
    } catch (const Interrupted& error) {
      if (setup.say) setup.say("stopped by a signal before all ranks had met");
      return Signals::ExitCodeOf(needs.signal());
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
  return RunForked({.ranks = ranks.count,
                    .first = tcp.rank,
                    .world = tcp.size,
                    .run = run,
                    .lost = lost,
                    .signal = needs.signal});
}

}  // namespace trireme
