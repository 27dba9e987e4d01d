#include "base/stop_notice.h"

#include <csignal>

namespace trireme {

int StopNotice::received() {
  const int signal = signals_.received();
  if (signal == SIGINT && !told_.exchange(true)) {
    log_.Info(part_, "{}; press Ctrl-C again to stop immediately", what_);
  }
  return signal;
}

}  // namespace trireme
