#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strategy/exchange/memory_centre.h"

namespace trireme {

// Weights that workers write into each other's memory, one-sided: each has an inbox beside the
// centre, which any other may overwrite, and looks into it when it likes. Called on the worker's
// thread; the work is done on the centre's, in the order of the calls.
class NeighbourInboxes {
 public:
  struct Place {
    int own = 0, clients = 1;
    int neighbours = 1;  // that are written to at a time, drawn anew each time
    uint64_t seed = 0;
  };
  NeighbourInboxes(MemoryCentre& centre, const Place& place) : centre_(centre), place_(place) {}

  void Begin(size_t floats);     // what lies in the own inbox does not count
  void Prefetch(size_t floats);  // what the next Take gives
  // What lies in the own inbox, if it was not taken before.
  std::optional<std::vector<float>> Take(size_t floats);
  void Send(Queue& queue, Slice weights);

  static std::string RegionOf(int client);

 private:
  // What the centre's thread may still need when this object is gone.
  struct Reached {
    std::map<int, Region> inboxes;  // by client
    std::optional<std::vector<float>> found;
    uint64_t seen = 0;  // the version of the own inbox that was found last
    const Region& InboxOf(int client, Memory& memory, size_t floats);
  };
  std::vector<int> Draw();

  MemoryCentre& centre_;
  const Place place_;
  uint64_t sends_ = 0;
  bool looks_ = false;
  const std::shared_ptr<Reached> reached_ = std::make_shared<Reached>();
};

}  // namespace trireme
