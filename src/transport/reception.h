#pragma once
#include <string>

#include "transport/link.h"

namespace trireme {

// Where clients come in that nobody knew when the server began. Thread-safe.
class Reception {
 public:
  virtual ~Reception() = default;
  struct Guest {
    Link* link = nullptr;  // lives as long as the reception
    std::string name;      // for messages: an address
  };
  virtual Guest Next() = 0;  // one that has come since the last call; no link: none
  virtual double timeout_s() const = 0;
  virtual void RingFor(Bell* bell) = 0;  // rings when Next has one; null for none
};

}  // namespace trireme
