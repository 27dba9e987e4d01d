#include "report/run_state.h"

#include <fmt/format.h>

#include <cstring>

namespace trireme {
namespace {

std::string SignalText(int signal) {
  const char* name = signal > 0 ? sigabbrev_np(signal) : nullptr;
  return name ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
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
