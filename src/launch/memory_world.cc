#include "launch/memory_world.h"

#include "transport/memory/mapped.h"

namespace trireme {

// Where rank 0 was killed, the next one's box goes on with what is there.
MemoryWorld::MemoryWorld(World& world, const std::shared_ptr<MemoryImage>& image,
                         const MemoryBoxSetup& setup)
    : world_(world) {
  if (world.rank() == 0) box_ = std::make_unique<MemoryBox>(image, setup);
  memory_ = ConnectMapped(image, setup.timeout_s);
}

}  // namespace trireme
