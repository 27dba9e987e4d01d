#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "transport/memory/box.h"
#include "transport/tcp/memory_door.h"
#include "transport/tcp/memory_way.h"
#include "transport/world.h"

namespace trireme {

// transport.memory_way
struct MemoryWayKind {
  const char* name;
  LongValues way;
};
constexpr MemoryWayKind kMemoryWays[] = {{"auto", LongValues::kFastest},
                                         {"tcp", LongValues::kConnection},
                                         {"fabric", LongValues::kBulk}};
LongValues LongValuesFor(std::string_view name);

// Where the memory lies that the ranks of a job have in common, as those of this machine see it.
struct MemorySetup {
  std::string boxes;                      // transport.memory; empty: rank 0's process keeps a box
  LongValues way = LongValues::kFastest;  // to those
  MemoryBoxSetup box;                     // of rank 0
  bool by_world = false;                  // ... which keeps none: the transport gives the memory
  // Mapped before the ranks start, where rank 0 is one of them: they reach its box so.
  std::shared_ptr<MemoryImage> image = nullptr;
  std::string meet, listen = {};  // where other ranks find it; empty: there are none
  std::string secret;
  MemoryWires::Refused refused = {};  // told of everybody who was sent away there
  std::function<void(int rank, const std::string& words)> say = {};  // which way was taken
};

// A rank's world, and beside it that memory.
class MemoryWorld : public World {
 public:
  MemoryWorld(World& world, const MemorySetup& setup);

  int rank() override { return world_.rank(); }
  int size() override { return world_.size(); }
  Group& group() override { return world_.group(); }
  bool together() const override { return world_.together(); }
  Link& LinkTo(int rank) override { return world_.LinkTo(rank); }
  Group& Subgroup(int number, int member, int members) override {
    return world_.Subgroup(number, member, members);
  }
  Acceptor* acceptor() override { return world_.acceptor(); }
  Memory* memory() override { return memory_; }
  void Worked() override { world_.Worked(); }

 private:
  World& world_;
  std::unique_ptr<MemoryBox> box_;  // of rank 0, and so is the door
  std::unique_ptr<MemoryDoor> door_;
  std::unique_ptr<Memory> own_;
  Memory* memory_ = nullptr;  // that, or the world's
};

}  // namespace trireme
