#include "strategy/exchange/neighbour_inboxes.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "base/random.h"
#include "flat/arithmetic.h"

namespace trireme {

std::string NeighbourInboxes::RegionOf(int client) { return fmt::format("inbox.{}", client); }

const Region& NeighbourInboxes::Reached::InboxOf(int client, Memory& memory, size_t floats) {
  Region& inbox = inboxes[client];
  if (inbox.number < 0 || inbox.incarnation != memory.incarnation()) {
    inbox = memory.Create(RegionOf(client), RegionType::kF32, floats);
  }
  return inbox;
}

// What lies there already was meant for an earlier life, perhaps of another run.
void NeighbourInboxes::Begin(size_t floats) {
  centre_.Later(
      {}, [floats, own = place_.own, reached = reached_](Memory& memory, std::vector<float>&) {
        reached->seen = memory.Wait(reached->InboxOf(own, memory, floats), 0, After(0));
      });
}

void NeighbourInboxes::Prefetch(size_t floats) {
  if (std::exchange(looks_, true)) return;
  centre_.Later(
      {}, [floats, own = place_.own, reached = reached_](Memory& memory, std::vector<float>&) {
        const Region& inbox = reached->InboxOf(own, memory, floats);
        const uint64_t version = memory.Wait(inbox, 0, After(0));  // only asks
        if (version == reached->seen) return;
        reached->found.emplace(floats);
        memory.Get(inbox, 0, *reached->found, &reached->seen).Wait();
      });
}

std::optional<std::vector<float>> NeighbourInboxes::Take(size_t floats) {
  Prefetch(floats);
  centre_.Settle();  // from here on nobody else touches it
  looks_ = false;
  return std::exchange(reached_->found, {});
}

// One that is overwritten before its owner has looked is lost, as in the paper.
void NeighbourInboxes::Send(Queue& queue, Slice weights) {
  std::vector<int> to = Draw();
  if (to.empty()) return;
  centre_.Later(centre_.CopyOf(queue, weights), [to = std::move(to), reached = reached_](
                                                    Memory& memory, std::vector<float>& values) {
    for (const int client : to) {
      memory.Put(reached->InboxOf(client, memory, values.size()), 0, values).Wait();
    }
  });
}

std::vector<int> NeighbourInboxes::Draw() {
  constexpr uint64_t kPurpose = 0x9a5;  // not the numbers that other draws by the seed use
  std::vector<int> others(size_t(place_.clients));
  std::iota(others.begin(), others.end(), 0);
  std::erase(others, place_.own);
  const Random random(Hash(place_.seed, kPurpose + uint64_t(place_.own), sends_++));
  const size_t count = std::min(size_t(place_.neighbours), others.size());
  for (size_t i = 0; i < count; ++i) {  // Fisher, Yates, as far as needed
    std::swap(others[i], others[i + random.Bits(i) % (others.size() - i)]);
  }
  others.resize(count);
  return others;
}

}  // namespace trireme
