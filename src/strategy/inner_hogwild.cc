// Hogwild's races live here and nowhere else. They are the algorithm: an update of one replica is
// written to the state while others read it in forward and backward and write theirs. A weight is a
// float, aligned, read and written whole; an update may be lost where two meet, and a forward may
// see some weights before and others after an update. Every such write goes through
// InnerHogwild::Agree, so a report that does not name this file is a mistake.
#include "strategy/inner_hogwild.h"

#include <algorithm>

#include "base/error.h"
#include "strategy/tags.h"
#include "transport/broadcast.h"

#if defined(__SANITIZE_THREAD__)
// Of a race's two sides one writes, and that one has a frame of this file.
extern "C" const char* __tsan_default_suppressions() { return "race:strategy/inner_hogwild.cc\n"; }
#endif

namespace trireme {
namespace {

constexpr size_t kMostStale = 1000;
constexpr size_t kLine = 16;  // floats: a cache line of its own

}  // namespace

InnerHogwild::InnerHogwild(Group& group) : group_(group), staleness_(kMostStale + 1) {
  if (group.commons()) return;
  throw UsageError(
      "strategy hogwild: its workers share one set of weights, so they are threads or processes of "
      "one machine (--transport threads, shm)");
}

Slice InnerHogwild::Place(Role role, size_t floats, Device& device) {
  if (role != Role::kState) return {};
  if (!device.host_visible()) {
    throw UsageError(
        "strategy hogwild keeps its weights in the processor's memory, which device {} does not "
        "read",
        device.name());
  }
  const auto counter = AllocateForAll(group_, kTagState, kLine);
  updates_ = reinterpret_cast<std::atomic<int64_t>*>(counter.data());
  return {AllocateForAll(group_, kTagState, floats).data(), floats, &device};
}

// Nobody steps before the first has filled the state.
void InnerHogwild::Begin(Replica&) { Barrier(group_, kTagState); }

void InnerHogwild::BeforeStep(Replica&) { seen_ = updates_->load(std::memory_order_relaxed); }

void InnerHogwild::Agree(Replica& replica, FunctionRef<void()> update) {
  update();
  replica.queue.Sync();  // of the host: has run already
  const int64_t behind = updates_->fetch_add(1, std::memory_order_relaxed) - seen_;
  ++staleness_[std::min(size_t(behind), kMostStale)];
}

}  // namespace trireme
