#include "report/run_state.h"

#include <fmt/format.h>

#include <csignal>

namespace trireme {
namespace {

// Those that end a program. sigabbrev_np knows all, but is newer (glibc 2.32) than many a cluster.
struct SignalName {
  int number;
  const char* name;
};
constexpr SignalName kSignals[] = {{SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"},
                                   {SIGILL, "SIGILL"},   {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"},
                                   {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},   {SIGKILL, "SIGKILL"},
                                   {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
                                   {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"},
                                   {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"}};

std::string SignalText(int signal) {
  for (const SignalName& known : kSignals) {
    if (known.number == signal) return known.name;
  }
  return fmt::format("signal {}", signal);
}

}  // namespace

std::string StateText(const RunState& state) {
  switch (state.kind) {
    case RunState::kRunning: {
      const std::string where = state.reason.empty() ? "" : " on " + state.reason;
      return fmt::format("running{}{}", where, state.unsure ? ", or killed there" : "");
    }
    case RunState::kDone:
      return state.reason.empty() ? "done" : fmt::format("done ({})", state.reason);
    case RunState::kStopped:
      return "stopped by " + state.reason;
    case RunState::kKilled:
      break;
  }
  return fmt::format("stopped ({})", state.reason.empty() ? "killed or failed" : state.reason);
}

RunState StateOf(const RunSigns& signs, const std::string& this_host) {
  if (signs.held == true) return {RunState::kRunning, "", false};
  if (signs.end && signs.end->signal != 0) {
    return {RunState::kStopped, SignalText(signs.end->signal), false};
  }
  if (signs.summary) return {RunState::kDone, signs.summary_reason, false};
  if (signs.end) return {RunState::kKilled, signs.end->reason, false};
  const bool elsewhere = !signs.host.empty() && signs.host != this_host;
  if (elsewhere) return {RunState::kRunning, signs.host, true};
  if (!signs.held) return {RunState::kRunning, "", true};
  return {RunState::kKilled, "", false};
}

}  // namespace trireme
