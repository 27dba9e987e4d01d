#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "transport/memory.h"

namespace trireme {

struct MemoryBoxSetup {
  size_t bytes = size_t{64} << 20;  // for regions, their rings and the slots of clients
  int threads = 1;                  // that add
  double timeout_s = 60;            // after which a client that is cut off has ended
};

// The server of a Memory. Its contents are in memory that the processes forked afterwards share,
// so those can connect by the way `mapped`. Thread-safe.
class MemoryBox {
 public:
  explicit MemoryBox(const MemoryBoxSetup& setup);
  ~MemoryBox();  // clients find it gone

  // The way `mapped`: for a client in this process. A ticket or client must not outlive the box's
  // memory, which stays as long as one of them.
  std::unique_ptr<Memory> Connect();

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

}  // namespace trireme
