#pragma once
#include "transport/group.h"
#include "transport/link.h"

namespace trireme {

// What a rank is given at its start. Belongs to the transport that started it.
class World {
 public:
  virtual ~World() = default;
  int rank() { return group().rank(); }
  int size() { return group().size(); }
  virtual Group& group() = 0;  // of all ranks

  // This rank's end of the link with another one. The lower rank is the server.
  virtual Link& LinkTo(int rank) = 0;
};

}  // namespace trireme
