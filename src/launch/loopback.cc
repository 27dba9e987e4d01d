#include "launch/loopback.h"

#include <fmt/format.h>
#include <unistd.h>

namespace trireme {

LoopbackPlace::~LoopbackPlace() {
  if (listener_ >= 0) close(listener_);
}

TcpSetup LoopbackPlace::In(TcpSetup setup) {
  int port = 0;
  setup.listener = listener_ = ListenOnLoopback(port);
  setup.meet = fmt::format("127.0.0.1:{}", port);
  return setup;
}

}  // namespace trireme
