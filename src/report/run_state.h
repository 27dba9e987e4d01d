#pragma once
#include <optional>
#include <string>

namespace trireme {

// What became of a run, as far as its files and its lock tell.
struct RunState {
  enum Kind {
    kRunning,  // or so it seems: see `unsure`
    kDone,
    kStopped,  // by a signal, and said so
    kKilled,   // nobody holds it, and it has not said why it ended
  };
  Kind kind = kKilled;
  std::string reason;   // of the end, where it is told; of kRunning: the host, if it is another
  bool unsure = false;  // this machine cannot see whether anybody holds the run
};

// "running", "done (patience)", "stopped by SIGTERM", "stopped (killed or failed)".
std::string StateText(const RunState& state);

// What a run said of its end in starts.jsonl: {"end": {"reason": "signal", "signal": 15}}.
struct RunEnd {
  std::string reason;
  int signal = 0;
};

// What can be seen of a run.
struct RunSigns {
  std::optional<bool> held;    // its lock; nothing: there are no locks
  std::string host;            // where it was started last; empty: not told
  bool summary = false;        // there is one, and not of an earlier life
  std::string summary_reason;  // why that says the run ended
  std::optional<RunEnd> end;   // what it said, unless it was started again since
};
RunState StateOf(const RunSigns& signs, const std::string& this_host);

}  // namespace trireme
