#pragma once
#include "transport/tcp/world.h"

namespace trireme {

// Where ranks of one machine meet: a socket that is there before they start.
class LoopbackPlace {
 public:
  LoopbackPlace() = default;
  LoopbackPlace(const LoopbackPlace&) = delete;
  LoopbackPlace& operator=(const LoopbackPlace&) = delete;
  ~LoopbackPlace();
  TcpSetup In(TcpSetup setup);  // the setup with this place in it

 private:
  int listener_ = -1;
};

}  // namespace trireme
