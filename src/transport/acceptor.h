#pragma once
#include <string>

#include "transport/link.h"

namespace trireme {

// Where clients come in that nobody knew when the server began. Thread-safe.
class Acceptor {
 public:
  virtual ~Acceptor() = default;
  struct Guest {
    Link* link = nullptr;  // lives as long as the acceptor
    std::string name;      // for messages: an address
  };
  virtual Guest Next() = 0;  // one that has come since the last call; no link: none
  virtual double timeout_s() const = 0;
  virtual void SetWakeEvent(WakeEvent* wake) = 0;  // notified when Next has one; null: none is
};

}  // namespace trireme
