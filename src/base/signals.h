#pragma once
#include "base/stop_wish.h"

namespace trireme {

// SIGINT, SIGTERM, SIGHUP (the terminal or the connection has gone; ignored under nohup) and
// SIGUSR1 (schedulers send it some time before the end of a job; mpirun hands it on) as a wish to
// stop: a loop asks after each step, writes its checkpoint and ends with ExitCode(). A SIGINT after
// the first signal ends the process at once. SIGPIPE is ignored: a closed pipe is an error of
// write(2), not a death.
//
// One at a time, made by main and handed on by reference; the destructor puts the old handlers
// back, but from then on SIGUSR1 is ignored. Any thread may ask.
class Signals final : public StopWish {
 public:
  Signals();
  ~Signals() override;
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // The first signal that arrived, 0 if none did. One relaxed load.
  int received() const noexcept override;
};

}  // namespace trireme
