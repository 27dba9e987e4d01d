// What runs in a pod: there is no shell in the image, and nobody else who starts the rank again.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "base/signals.h"
#include "cli/command.h"
#include "cli/launch_words.h"
#include "record/checkpoint_folder.h"
#include "study/child.h"

namespace trireme {
namespace {

constexpr int kTries = 5;
// A pod that is lost comes back when its cluster has room for it; the others wait.
constexpr char kPatience[] = "transport.join_s=900";
constexpr int kWrongUsage = 2;

constexpr Flag kFlags[] = {
    {"--tries", "N", "give up after so many starts in a row without a new checkpoint (5)"},
};

// False: a signal came.
bool Pause(double seconds, const Signals& signals) {
  for (const double until = Now() + seconds; Now() < until;) {
    if (signals.stop()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return !signals.stop();
}

int Run(const Args& args, Process& process) {
  const int most = args.Number("--tries", kTries);
  if (most < 1) throw UsageError("--tries must be at least 1, got {}", most);
  const RunWords words = ReadRunWords(args, {"--set", kPatience}, false);
  const Log log(process.log);
  const Signals signals;
  StopNotice notice(signals, log, "launch", "");
  notice.Over();  // train says what it does about it
  const auto newest = [&] { return LinkIn(words.run + "/checkpoints", kLatest); };
  double pause_s = 1;
  for (int tries = 0;; pause_s = std::min(2 * pause_s, 30.0)) {
    const auto before = newest();
    const bool begun = Exists(words.run + "/config.toml");
    const int code = RunChild(begun ? words.resume : words.first, "", notice);
    if (code == 0 || code == kWrongUsage) return code;
    if (signals.stop()) return signals.ExitCode();
    // Another rank was stopped or lost, or this one failed.
    const auto after = newest();
    if (after != before) {
      tries = 0;
      pause_s = 1;
    }
    if (++tries >= most) {
      log.Warn("launch", "{} in a row without a new checkpoint: giving up",
               Counted(tries, "start"));
      return code;
    }
    log.Info("launch", "train ended with exit code {}; starting it again from {} in {:g} s", code,
             after ? StepName(*after) : std::string("the beginning"), pause_s);
    if (!Pause(pause_s, signals)) return signals.ExitCode();
  }
}

}  // namespace

extern const Command kLaunchRank;
const Command kLaunchRank = {
    .name = "launch rank",
    .summary = "train as one rank, and again from the last checkpoint when ranks are lost",
    .usage = "trireme launch rank [--tries N] -- train [RECIPE] --out DIR [flags of train]",
    .examples =
        "trireme launch rank -- train iris --out runs/a     # in a pod: see launch kubernetes\n",
    .flags = kFlags,
    .places = kTrainPlaces,
    .run = Run,
};

}  // namespace trireme
