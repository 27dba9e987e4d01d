#pragma once
#include <memory>

#include "transport/memory/box.h"
#include "transport/world.h"

namespace trireme {

// A rank's world, and beside it memory that all ranks of the job have in common. All are of this
// machine: the memory was mapped before they started, and rank 0's process keeps the box.
class MemoryWorld : public World {
 public:
  MemoryWorld(World& world, const std::shared_ptr<MemoryImage>& image, const MemoryBoxSetup& setup);

  int rank() override { return world_.rank(); }
  int size() override { return world_.size(); }
  Group& group() override { return world_.group(); }
  bool together() const override { return world_.together(); }
  Link& LinkTo(int rank) override { return world_.LinkTo(rank); }
  Group& Subgroup(int number, int member, int members) override {
    return world_.Subgroup(number, member, members);
  }
  Acceptor* acceptor() override { return world_.acceptor(); }
  Memory* memory() override { return memory_.get(); }
  void Worked() override { world_.Worked(); }

 private:
  World& world_;
  std::unique_ptr<MemoryBox> box_;  // of rank 0
  std::unique_ptr<Memory> memory_;
};

}  // namespace trireme
