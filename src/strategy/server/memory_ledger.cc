#include "strategy/server/memory_ledger.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace trireme {

MemoryLedger::MemoryLedger(Memory& memory, ServerState& state, const Setup& setup)
    : memory_(memory), state_(state), setup_(setup), fences_(size_t(kMostFences)) {}

void MemoryLedger::Begin() {
  const std::span<const float> values = state_.partition();
  centre_ = memory_.Create(kCentreRegion, RegionType::kF32, values.size());
  fence_region_ = memory_.Create(kFenceRegion, RegionType::kI64, uint64_t(kMostFences));
  // The server before this one may have been killed a moment ago.
  if (!memory_.Lock(centre_, After(setup_.timeout_s))) {
    throw Error("another run keeps its centre in the same memory ({}); give this one its own",
                memory_.way());
  }
  locked_ = true;
  memory_.Get(fence_region_, 0, fences_).Wait();
  for (int64_t& fence : fences_) ++fence;
  memory_.Put(fence_region_, 0, fences_).Wait();
  memory_.Put(centre_, 0, values, {}, &read_).Wait();
  origin_ = int64_t(read_) - state_.version();
}

MemoryLedger::~MemoryLedger() {
  if (!locked_) return;
  try {
    memory_.Unlock(centre_);
  } catch (const std::exception&) {  // the box is gone, and the lock with it
  }
}

void MemoryLedger::Fence(int client) {
  fences_[size_t(client)] = memory_.FetchAdd(fence_region_, uint64_t(client), 1) + 1;
  Read();
}

void MemoryLedger::Gather() {
  uint64_t version = 0;
  memory_.Get(centre_, 0, state_.values(), &version).Wait();
  ReadTo(version);
}

bool MemoryLedger::ReadTo(uint64_t version) {
  constexpr size_t kAtATime = 256;
  bool any = false;
  while (read_ < version) {
    const std::vector<RegionNote> entries = memory_.Notes(centre_, read_, kAtATime);
    for (const RegionNote& entry : entries) {
      if (entry.version > version) return any;
      Take(entry);
      read_ = entry.version;
      any = true;
    }
    if (entries.size() < kAtATime) break;
  }
  return any;
}

// What is added cannot be taken back: a note that does not hold is named, and its leases stay as
// they are.
void MemoryLedger::Take(const RegionNote& entry) {
  const auto note = UnpackNote(entry.note);
  if (note && setup_.handout) FollowTo(std::ranges::max(note->leases));
  const char* const fault = note ? Fault(*note) : "its note is damaged";
  if (fault) {
    ++origin_;
    const bool known = note && note->client >= 0 && note->client < int64_t(state_.clients().size());
    if (known) ++state_.client(int(note->client)).refused;
    if (!std::exchange(named_, true) && setup_.log) {
      setup_.log->Warn("server", "an add to the centre in memory counts for no lease: {}", fault);
    }
    return;
  }
  GoodPush push{.client = int(note->client), .leases = note->leases};
  PushHead head = note->head;
  head.version = std::clamp<int64_t>(head.version - origin_, 0, state_.version());
  for (const int64_t id : push.leases) {
    const Lease& lease = state_.leases().Get(id);
    push.samples += lease.end - lease.begin;
  }
  // Numbers for the metrics of all: what cannot be is left out.
  if (!std::isfinite(head.loss_sum)) head.loss_sum = 0;
  if (!(head.correct >= 0 && head.correct <= 1.01 * double(push.samples) + 1)) head.correct = 0;
  if (!(head.waited_s >= 0 && std::isfinite(head.waited_s))) head.waited_s = 0;
  if (!head.OverflowsCanBe()) head.overflows = 0;
  const auto ints = head.ints();
  push.message.ints.assign(ints.begin(), ints.end());
  state_.Added(push);
}

// All take in the table's order, so those before it are taken, too. Nobody owns them: they are
// never given to others.
void MemoryLedger::FollowTo(int64_t id) {
  LeaseTable& leases = state_.leases();
  while (leases.next_id() <= id && leases.Take(kNobody)) {
  }
}

const char* MemoryLedger::Fault(const CentreNote& note) const {
  if (note.client < 0 || note.client >= int64_t(state_.clients().size())) {
    return "it is of a client that does not exist";
  }
  std::vector<int64_t> ids = note.leases;
  std::ranges::sort(ids);
  if (std::ranges::adjacent_find(ids) != ids.end()) return "it names a lease twice";
  const int owner = setup_.handout ? kNobody : int(note.client);
  const bool own =
      std::ranges::all_of(ids, [&](int64_t id) { return state_.leases().Owns(id, owner); });
  return own ? nullptr : "it names a lease that is not its own";
}

}  // namespace trireme
