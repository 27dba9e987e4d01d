#include "launch/memory_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "transport/address.h"
#include "transport/fabric/end.h"
#include "transport/memory/mapped.h"
#include "transport/memory/striped.h"

namespace trireme {
namespace {

std::unique_ptr<Memory> ConnectBoxes(const std::string& list, const MemorySetup& setup) {
  std::vector<std::unique_ptr<Memory>> boxes;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    const std::string box = list.substr(at, end - at);
    const auto address = ParseAddress(box);
    if (!address || !address->port) {
      throw UsageError("transport.memory = \"{}\": '{}' is not HOST:PORT", list, box);
    }
    boxes.push_back(ConnectTcp({.meet = box,
                                .secret = setup.secret,
                                .timeout_s = setup.box.timeout_s,
                                .long_values = setup.way,
                                .open_bulk = OpenFabricEnd}));
    at = end + 1;
  }
  return Stripe(std::move(boxes));
}

}  // namespace

LongValues LongValuesFor(std::string_view name) {
  for (const MemoryWayKind& kind : kMemoryWays) {
    if (name == kind.name) return kind.way;
  }
  throw UsageError("transport.memory_way = \"{}\" is no way to a memory box", name);
}

// Where rank 0 was killed, the next one's box goes on with what is there.
MemoryWorld::MemoryWorld(World& world, const MemorySetup& setup) : world_(world) {
  const bool keeps = setup.boxes.empty() && world.rank() == 0 && !setup.by_world;
  if (keeps) {
    box_ = std::make_unique<MemoryBox>(setup.image, setup.box);
    if (!setup.meet.empty()) {
      door_ = std::make_unique<MemoryDoor>(
          *box_, MemoryDoorSetup{
                     .listen = setup.listen, .secret = setup.secret, .refused = setup.refused});
    }
  }
  if (setup.by_world) {
    memory_ = world.ShareMemory(setup.box.bytes);
  } else if (setup.image) {
    own_ = ConnectMapped(setup.image, setup.box.timeout_s);
  } else {
    own_ = ConnectBoxes(setup.boxes.empty() ? setup.meet : setup.boxes, setup);
  }
  if (own_) memory_ = own_.get();
  if (!setup.say) return;
  std::string words = "the way to the common memory: " + memory_->way();
  if (door_) words += fmt::format("; elsewhere: tcp to {}", setup.meet);
  setup.say(world.rank(), words);
}

}  // namespace trireme
