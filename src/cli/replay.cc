// The field's published experiments, run again.
#include "study/replay.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/sections.h"
#include "base/signals.h"
#include "base/text.h"
#include "cli/command.h"
#include "engine/engines.h"
#include "study/child.h"
#include "study/results.h"

namespace trireme {
namespace {

constexpr Flag kFlags[] = {
    {"--full", "", "run at the original size, not at one that takes minutes on two processors"},
    {"--repeat", "N", "runs of each combination (3)"},
    {"--steps", "N", "train only N steps per run, to check that everything works"},
    {"--data", "SOURCE", "samples to train on, instead of those found on this machine"},
    {"--transport", "NAME",
     "iris-mpi, scenes-mpi: how ranks talk (tcp); mpi starts them with mpirun"},
    {"--device", "DEVICE",
     "resnet50-batch, ddp-sweep: also on this device, as cuda, beside the processor"},
    {"--out", "DIR", "where runs and results are written; an unfinished replay there is continued"},
    {"--quiet", "", "print nothing but warnings and errors"},
    {"--json", "", "print JSON"},
};

constexpr Place kPlaces[] = {
    {"NAME", Place::kOptional,
     "bsp-mnist, iris-mpi, scenes-mpi, resnet50-batch or ddp-sweep (default: list them)"}};

std::string CommandOf(const Args& args, const std::string& out) {
  std::vector<std::string> words{"trireme", "replay", args.Optional("NAME").value_or("")};
  const auto flags = args.FlagsWithout({"--out", "--quiet", "--json"});
  words.insert(words.end(), flags.begin(), flags.end());
  words.insert(words.end(), {"--out", out});
  return ShellLine(words);
}

int List(Process& process) {
  for (const ReplayKind& kind : ReplayKinds()) {
    process.out.Print("{:<16} {}\n", kind.name, kind.summary);
  }
  return 0;
}

void Shorten(Replay& replay, int steps) {
  for (ReplayPart& part : replay.parts) {
    std::erase_if(part.plan.settings,
                  [](const std::string& setting) { return KeyOf(setting) == "trainer.epochs"; });
    part.plan.settings.push_back(fmt::format("trainer.steps={}", steps));
  }
}

std::vector<std::string> LauncherOf(const TransportKind* transport, int ranks) {
  return transport && transport->launcher ? transport->launcher(ranks) : std::vector<std::string>();
}

const TransportKind* TransportOf(const Args& args, const ReplayKind& kind) {
  const auto name = args.Value("--transport");
  if (!name) return nullptr;
  if (!kind.over_messages) {
    throw UsageError("--transport: replay {} chooses its own transports; leave the flag out",
                     kind.name);
  }
  const TransportKind* transport = FindTransport(*name);
  if (!transport) {
    throw UsageError("--transport {}: there is no such transport; see: trireme list transports",
                     *name);
  }
  LauncherOf(transport, 1);  // throws before the first run where ranks cannot be started
  return transport;
}

std::optional<std::string> DeviceOf(const Args& args, const ReplayKind& kind) {
  const auto device = args.Value("--device");
  if (!device) return {};
  if (!kind.on_devices) {
    throw UsageError("--device: replay {} runs on the processor; leave the flag out", kind.name);
  }
  const DeviceChoice choice = FindDevice(*device);
  if (choice.kind == &HostEngine()) return {};
  RequireDevice(choice);
  return device;
}

int Run(const Args& args, Process& process) {
  const auto name = args.Optional("NAME");
  if (!name) return List(process);
  const ReplayKind& kind = FindReplay(*name);
  const TransportKind* transport = TransportOf(args, kind);
  Replay replay = kind.make({.full = args.Has("--full"),
                             .repeat = args.Number("--repeat", 3),
                             .data = args.Value("--data"),
                             .transport = transport,
                             .device = DeviceOf(args, kind)});
  if (const int steps = args.Number("--steps", 0)) Shorten(replay, steps);
  for (const ReplayPart& part : replay.parts) {
    if (part.skipped.empty()) CheckPlan(part.plan);
  }
  const std::string out = args.Value("--out").value_or(DatedFolder("replay-" + replay.name));
  const Log log(process.log, Log::kNoRank);
  const Signals signals;
  StopNotice notice(signals, log, "replay", "stopping the current run");
  const bool quiet = args.Has("--quiet");
  std::vector<ReplayedPart> parts;
  for (const ReplayPart& part : replay.parts) {
    parts.push_back({part, {}});
    if (!part.skipped.empty()) {
      log.Warn("replay", "{} is skipped: {}", part.name, part.skipped);
      continue;
    }
    const std::string folder = out + "/" + part.name;
    const int code = RunSweep(
        part.plan, {.out = folder,
                    .train =
                        [&](const auto& words, const std::string& path, int ranks) {
                          return RunChild(words, path, notice, LauncherOf(transport, ranks));
                        },
                    .stopped = [&] { return signals.ExitCode(); },
                    .say =
                        [&](const std::string& line) {
                          if (!quiet) log.Info("replay", "{}: {}", part.name, line);
                        }});
    if (code) {
      log.Info("replay", "stopped by a signal; continue with: {}", CommandOf(args, out));
      return code;
    }
    parts.back().rows = NumbersOf(part.plan, ReadSweep(part.plan, folder));
  }
  MakeDirectories(out);
  const Json json = ReplayJson(replay, parts);
  ReplaceFile(out + "/replay.json", json.Text(1) + "\n");
  WritePage(ReplayPage(replay, parts, CommandOf(args, out)), out);
  if (args.Has("--json")) {
    process.out.Write(json.Text() + "\n");
  } else {
    process.out.Write(ReplayText(replay, parts));
    process.out.Print("\nruns, replay.json and page.html are in {}\n", out);
  }
  const bool failed = std::any_of(parts.begin(), parts.end(), [](const ReplayedPart& part) {
    return std::any_of(part.rows.begin(), part.rows.end(),
                       [](const SweepNumbers& row) { return !row.seconds; });
  });
  return failed ? 1 : 0;
}

}  // namespace

extern const Command kReplay;
const Command kReplay = {
    .name = "replay",
    .summary = "repeat a published experiment, and show its numbers beside ours",
    .usage = "trireme replay [NAME] [--full] [flags]",
    .examples =
        "trireme replay                                   # list them\n"
        "trireme replay ddp-sweep --out runs/ddp\n"
        "trireme replay bsp-mnist --data mnist:DIR --full\n"
        "trireme replay iris-mpi --transport mpi          # started with mpirun\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
