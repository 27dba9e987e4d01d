#pragma once
#include "transport/world.h"

namespace trireme {

// A world with a memory beside it, for tests of the ways to a box.
class WithMemory : public World {
 public:
  WithMemory(World& world, Memory& memory) : world_(world), memory_(memory) {}
  Group& group() override { return world_.group(); }
  Link& LinkTo(int rank) override { return world_.LinkTo(rank); }
  Memory* memory() override { return &memory_; }

 private:
  World& world_;
  Memory& memory_;
};

}  // namespace trireme
