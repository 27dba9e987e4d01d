// A client that joins a run by hand.
#include <cstdlib>

#include "base/signals.h"
#include "base/stop_notice.h"
#include "cli/command.h"
#include "cli/recipe_flags.h"
#include "launch/signal_poller.h"
#include "strategy/presets.h"
#include "trainer/preflight.h"
#include "trainer/train.h"
#include "transport/tcp/server_world.h"

namespace trireme {
namespace {

constexpr Flag kFlags[] = {
    {"--data", "SOURCE", "where the samples are on this machine; for federated they may be its own",
     "data.source"},
    {"--threads", "N", "compute threads, or auto", "trainer.threads"},
    kDeviceFlag,
    {"--secret-file", "FILE", "a file with the run's secret; or set TRIREME_SECRET",
     "transport.secret_file"},
    kSetFlag,
};
constexpr Place kPlaces[] = {{"HOST:PORT", Place::kRequired, "where the run's server listens"}};

int Run(const Args& args, Process& process) {
  const Log log(process.log);
  const std::string meet = args.Required("HOST:PORT");
  Recipe own;
  Sections flags;
  Bind(flags, own);
  args.ApplyTo(flags);
  own.transport.name = "tcp";
  const std::string secret = Launcher(own.transport, false, {}).Secret();

  const RunInfo run_info = ReadRunInfo(FetchRunInfo(meet, secret, own.transport.timeout_s));
  const Job job = PrepareClient(run_info, [&](Sections& sections) { args.ApplyTo(sections); });

  const Signals signals;
  StopNotice stop(signals, log, "join", "leaving the run after this step");
  const auto received = [&] { return stop.received(); };
  const SignalPoller poller(received);
  log.Info("join", "joining {} with {}", meet, job.recipe.data.source);
  return Join(job, {.meet = meet, .secret = secret, .signals = signals, .log = log});
}

}  // namespace

extern const Command kJoin;
const Command kJoin = {
    .name = "join",
    .summary = "train for a run whose server is elsewhere",
    .usage = "trireme join HOST:PORT [--data SOURCE] [flags]",
    .examples =
        "trireme join 127.0.0.1:7117                 # a run on this machine\n"
        "trireme join node1:7117 --secret-file s --data fashion-mnist:/data\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
