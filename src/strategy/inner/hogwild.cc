// Hogwild's races live here and nowhere else. They are the algorithm: an update of one replica is
// written to the state while others read it in forward and backward and write theirs. A weight is a
// float, aligned, read and written whole; an update may be lost where two meet, and a forward may
// see some weights before and others after an update. Every such write goes through
// InnerHogwild::Agree, so a report that does not name this file is a mistake.
#include "strategy/inner/hogwild.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "base/assert.h"
#include "base/error.h"
#include "strategy/step/tags.h"
#include "transport/collective/broadcast.h"

#ifdef TRIREME_WATCHES_THREADS
// Of a race's two sides one writes, and that one has a frame of this file.
extern "C" const char* __tsan_default_suppressions() { return "race:strategy/inner/hogwild.cc\n"; }
#endif

namespace trireme {
namespace {

constexpr size_t kMostStale = 254;

}  // namespace

struct InnerHogwild::Board {
  struct alignas(64) Counts {  // written by one replica
    std::atomic<int64_t> samples, by_staleness[kMostStale + 1];
  };
  alignas(64) std::atomic<int64_t> updates;
  Counts& of(int replica) { return reinterpret_cast<Counts*>(this + 1)[replica]; }
};

InnerHogwild::InnerHogwild(Group& group) : group_(group) {
  if (group.shared_memory()) return;
  throw UsageError(
      "strategy hogwild: its workers share one set of weights, so they must be threads or "
      "processes of one machine; use --transport threads or shm");
}

Slice InnerHogwild::Place(Role role, size_t floats, Device& device) {
  if (role != Role::kState) return {};
  TRIREME_ASSERT(device.host_visible());  // refusals.cc
  const size_t bytes = sizeof(Board) + size_t(group_.size()) * sizeof(Board::Counts);
  const auto memory = AllocateForAll(group_, kTagState, bytes / sizeof(float));
  board_ = reinterpret_cast<Board*>(memory.data());
  return {AllocateForAll(group_, kTagState, floats).data(), floats, &device};
}

// Nobody steps before the first has filled the state.
void InnerHogwild::Begin(Replica&) { Barrier(group_, kTagState); }

void InnerHogwild::BeforeStep(Replica&) { seen_ = board_->updates.load(std::memory_order_relaxed); }

void InnerHogwild::Agree(Replica& replica, FunctionRef<void()> update) {
  update();
  replica.queue.Sync();  // of the host: has run already
  const int64_t behind = board_->updates.fetch_add(1, std::memory_order_relaxed) - seen_;
  Board::Counts& own = board_->of(group_.rank());
  const auto add = [](std::atomic<int64_t>& to, int64_t more) {  // nobody else writes it
    to.store(to.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  };
  add(own.by_staleness[std::min(size_t(behind), kMostStale)], 1);
  add(own.samples, replica.work.batch);
}

std::vector<ClientStats> InnerHogwild::worker_stats() const {
  std::vector<ClientStats> all;
  for (int r = 0; r < group_.size(); ++r) {
    const Board::Counts& from = board_->of(r);
    std::vector<int64_t> counts;
    for (const auto& count : from.by_staleness) {
      counts.push_back(count.load(std::memory_order_relaxed));
    }
    const Staleness staleness = Staleness::Of(counts);
    all.push_back({.name = fmt::format("worker {}", r),
                   .here = true,
                   .pushes = staleness.updates(),
                   .samples = from.samples.load(std::memory_order_relaxed),
                   .staleness = staleness});
  }
  return all;
}

}  // namespace trireme
