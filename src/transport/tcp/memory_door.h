#pragma once
#include <memory>
#include <string>

#include "transport/tcp/memory_wires.h"

namespace trireme {

struct MemoryDoorSetup {
  std::string listen = "127.0.0.1:0";  // ADDRESS:PORT; 0: a free port
  std::string secret;                  // empty: only clients of this host are let in
  MemoryWires::Refused refused = {};   // told of everybody who was sent away
  BulkOffer bulk = {};                 // for long values; nothing: all go over the connection
};

// Where the clients of a box come in that reach it by the way `tcp`. Throws where it cannot listen.
class MemoryDoor {
 public:
  MemoryDoor(MemoryBox& box, const MemoryDoorSetup& setup);
  ~MemoryDoor();
  std::string address() const;  // with the port

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

}  // namespace trireme
