// A process that keeps memory for others.
#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "base/cores.h"
#include "base/signals.h"
#include "base/stop_notice.h"
#include "cli/command.h"
#include "launch/launcher.h"
#include "transport/fabric/end.h"
#include "transport/memory/box.h"
#include "transport/tcp/memory_door.h"
#include "transport/tcp/memory_way.h"

namespace trireme {
namespace {

constexpr Flag kFlags[] = {
    {"--size", "BYTES", "room for regions and what clients add, as 512M or 4G (default: 1G)"},
    {"--listen", "ADDRESS:PORT", "where clients find it (default: 127.0.0.1:7118)"},
    {"--file", "PATH", "keep the contents in this file: they survive the end of the process"},
    {"--snapshot-s", "SECONDS",
     "with --file: a snapshot so often, for the case that the machine fails; 0: none (default: "
     "30)"},
    {"--fabric", "PROVIDER",
     "offer clients to move long values by libfabric, as fi_info names it: tcp;ofi_rxm, shm, "
     "verbs;ofi_rxm"},
    {"--threads", "N", "threads that add (default: the cores of the job)"},
    {"--timeout-s", "SECONDS", "how long a client may be cut off (default: 360)",
     "transport.timeout_s"},
    {"--secret-file", "FILE",
     "a file with the secret that clients of other machines must know; or set TRIREME_SECRET",
     "transport.secret_file"},
    {"--status", "HOST:PORT", "print what the box there holds, and end"},
};

// 4G, 512M, 65536.
size_t ParseBytes(std::string_view text) {
  size_t unit = 1;
  if (!text.empty()) {
    switch (text.back()) {
      case 'K':
        unit = size_t{1} << 10;
        break;
      case 'M':
        unit = size_t{1} << 20;
        break;
      case 'G':
        unit = size_t{1} << 30;
        break;
      default:
        break;
    }
  }
  const auto number = ParseNumber<size_t>(text.substr(0, text.size() - (unit > 1)));
  constexpr size_t kMost = size_t{1} << 44;
  if (!number || *number > kMost / unit) {
    throw UsageError("--size must be a number of bytes, as 512M or 4G, got {}",
                     QuoteToml(std::string(text)));
  }
  constexpr size_t kLeast = size_t{1} << 20;  // a region's notes alone take a third of it
  if (*number * unit < kLeast) throw UsageError("--size must be at least 1M, got {}", text);
  return *number * unit;
}

int Run(const Args& args, Process& process) {
  TransportOptions transport;
  Sections sections;
  sections.Add("transport", transport);
  args.ApplyTo(sections);
  transport.name = "tcp";
  const std::string secret = Launcher(transport, false, {}).Secret();
  if (const auto where = args.Value("--status")) {
    process.out.Write(FetchMemoryStatus(
        {.meet = *where, .secret = secret, .timeout_s = std::min(transport.timeout_s, 10.0)}));
    return 0;
  }
  const Log log(process.log);
  const Signals signals;
  const double snapshot_s = args.Number("--snapshot-s", 30.0);
  if (snapshot_s < 0) throw UsageError("--snapshot-s must be at least 0, got {}", snapshot_s);
  const int threads = args.Number("--threads", UsableCores(ReadCoreFacts()).count);
  if (threads < 1 || threads > int(kMostThreads)) {
    if (args.Has("--threads")) {
      throw UsageError("--threads must be between 1 and {}, got {}", kMostThreads, threads);
    }
  }
  BulkOffer bulk;
  if (const auto provider = args.Value("--fabric")) {
    bulk = {*provider, OpenFabricEnd};
    OpenFabricEnd(*provider, "");  // before anybody comes for nothing
  }
  MemoryBox box({.bytes = ParseBytes(args.Value("--size").value_or("1G")),
                 .file = args.Value("--file").value_or(""),
                 .snapshot_s = snapshot_s,
                 .say = [&](const std::string& words) { log.Warn("memory", "{}", words); },
                 .threads = threads,
                 .timeout_s = transport.timeout_s});
  MemoryDoor door(box, {.listen = args.Value("--listen").value_or("127.0.0.1:7118"),
                        .secret = secret,
                        .refused =
                            [&](const std::string& who, const std::string& why) {
                              log.Warn("memory", "refused {}: {}", who, why);
                            },
                        .bulk = bulk});
  log.Info("memory", "listening on {}, {} of room{}{}", door.address(),
           FormatBytes(double(box.store().Look().size)),
           bulk.provider.empty() ? "" : fmt::format(", fabric ({})", bulk.provider),
           box.setup().file.empty() ? "" : ", contents in " + box.setup().file);
  StopNotice stop(signals, log, "memory", "ending the memory box");
  while (!stop.stop()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return signals.ExitCode();
}

}  // namespace

extern const Command kMemoryBox;
const Command kMemoryBox = {
    .name = "memory-box",
    .summary = "keep memory that other processes put, get and add into",
    .usage =
        "trireme memory-box [--size BYTES] [--listen ADDRESS:PORT] [--file PATH] "
        "[--fabric PROVIDER] [flags]",
    .examples =
        "trireme memory-box --size 4G                          # for processes of this machine\n"
        "trireme memory-box --size 4G --file box --snapshot-s 60\n"
        "trireme memory-box --listen 10.0.0.1:7118 --secret-file s\n"
        "trireme memory-box --fabric 'tcp;ofi_rxm'             # long values by libfabric\n"
        "trireme memory-box --status 127.0.0.1:7118            # what is in it\n",
    .flags = kFlags,
    .run = Run,
};

}  // namespace trireme
