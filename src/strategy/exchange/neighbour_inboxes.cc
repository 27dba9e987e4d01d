#include "strategy/exchange/neighbour_inboxes.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "base/random.h"
#include "flat/arithmetic.h"

namespace trireme {

std::string NeighbourInboxes::RegionOf(int client) { return fmt::format("inbox.{}", client); }

void NeighbourInboxes::Prefetch(size_t floats) {
  if (std::exchange(looks_, true)) return;
  centre_.Later({}, [floats, own = place_.own, look = look_](Memory& memory, std::vector<float>&) {
    const Region inbox = memory.Create(RegionOf(own), RegionType::kF32, floats);
    if (memory.Wait(inbox, 0, After(0)) <= look->seen) return;  // only asks
    look->found.emplace(floats);
    memory.Get(inbox, 0, *look->found, &look->seen).Wait();
  });
}

std::optional<std::vector<float>> NeighbourInboxes::Take(size_t floats) {
  Prefetch(floats);
  centre_.Settle();  // from here on nobody else touches it
  looks_ = false;
  return std::exchange(look_->found, {});
}

// One that is overwritten before its owner has looked is lost, as in the paper.
void NeighbourInboxes::Send(Queue& queue, Slice weights) {
  std::vector<int> to = Draw();
  if (to.empty()) return;
  centre_.Later(centre_.CopyOf(queue, weights), [to = std::move(to)](Memory& memory,
                                                                     std::vector<float>& values) {
    for (const int client : to) {
      const Region inbox = memory.Create(RegionOf(client), RegionType::kF32, values.size());
      memory.Put(inbox, 0, values).Wait();
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
