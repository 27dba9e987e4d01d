#include "strategy/exchange/memory_centre.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "flat/arithmetic.h"
#include "strategy/server/memory_ledger.h"
#include "strategy/server/push_gate.h"

namespace trireme {

MemoryCentre::MemoryCentre(const Place& place, LeaseSource& leases)
    : place_(place),
      leases_(leases),
      thread_([this](Task& task) { return Run(task); }, [](std::string_view) {}) {}

// ---- the worker's thread

// What lies in a box before the server has begun is another run's.
void MemoryCentre::Prefetch() {
  leases_.AwaitServer();
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(fetching_, true)) return;
  }
  Later({}, [this](Memory&, std::vector<float>&) { Get(); });
}

Centre::Snapshot MemoryCentre::Fetch(size_t floats, bool) {
  Prefetch();
  return Take(floats);
}

Centre::Snapshot MemoryCentre::FetchNow(size_t floats) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !fetching_ || reply_ || error_; });
    if (!error_) fetching_ = false;
    reply_.reset();
  }
  return Fetch(floats);
}

std::optional<Centre::Snapshot> MemoryCentre::Prefetched(size_t floats) {
  {
    std::lock_guard lock(mutex_);
    if (!reply_ && !error_) return {};
  }
  return Take(floats);
}

Centre::Snapshot MemoryCentre::Take(size_t floats) {
  const Stopwatch watch;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return reply_ || error_; });
  waited_s_ += watch.seconds();
  if (error_) std::rethrow_exception(error_);
  fetching_ = false;
  Snapshot taken = *std::exchange(reply_, {});
  if (taken.state.size() == floats) return taken;
  throw Error("the centre in memory has {} values, but this worker's state has {}",
              taken.state.size(), floats);
}

MemoryCentre::Copy MemoryCentre::CopyOf(Queue& queue, Slice from, std::vector<float> memory) {
  Copy copy{.values = std::move(memory)};
  copy.values.resize(from.size);
  if (queue.device().host_visible()) {
    flat::Get(queue, from, copy.values);
  } else {
    copy.staged = staging_.Take(queue.device(), from.size);
    flat::Get(queue, from, copy.staged);
  }
  copy.ready = queue.Record();
  return copy;
}

void MemoryCentre::Later(Copy copy, Job job) { thread_.Push({std::move(job), std::move(copy)}); }

void MemoryCentre::Push(Queue& queue, Slice change, const PushHead& head,
                        std::span<const int64_t> leases, std::vector<float> memory) {
  const auto standing = leases_.Release(leases);
  if (!standing) return;
  CentreNote note{standing->client, head, {leases.begin(), leases.end()}};
  Later(CopyOf(queue, change, std::move(memory)),
        [this, note = std::move(note), fence = standing->fence](
            Memory&, std::vector<float>& values) { Add(values, note, fence); });
}

bool MemoryCentre::HasRoom(std::span<const int64_t> leases) const { return HasRoomInNote(leases); }

void MemoryCentre::Settle() {
  const Stopwatch watch;
  thread_.Drain();
  waited_s_ += watch.seconds();
}

// ---- its own thread

CommWork MemoryCentre::Run(Task& task) {
  Copy& copy = task.copy;
  copy.ready.Wait();
  const Event began = Event::Fired(Now());
  try {
    if (copy.staged.size() > 0) {
      std::ranges::copy(copy.staged.values(), copy.values.begin());
      staging_.GiveBack(std::move(copy.staged));
    }
    task.job(place_.memory, copy.values);
    if (!copy.values.empty()) spare_ = std::move(copy.values);
  } catch (const MemoryRenewed&) {  // rank 0, or whoever keeps the box, is another one
    opened_ = false;
  } catch (const std::exception&) {
    std::lock_guard lock(mutex_);
    error_ = std::current_exception();
    changed_.notify_all();
    throw;
  }
  return {began, Event::Fired(Now())};
}

// The first version is what rank 0 begins with.
void MemoryCentre::Open() {
  if (opened_) return;
  const Deadline deadline = After(place_.timeout_s);
  fences_ = place_.memory.Open(kFenceRegion, deadline);
  centre_ = place_.memory.Open(kCentreRegion, deadline);
  if (place_.memory.Wait(centre_, 1, deadline) < 1) {
    throw PeerLost("rank 0 has not filled the centre in memory for {:g} s (transport.timeout_s)",
                   place_.timeout_s);
  }
  opened_ = true;
}

void MemoryCentre::Get() {
  Snapshot got{.clients = place_.clients, .state = std::move(spare_)};
  for (;;) {
    try {
      Open();
      uint64_t version = 0;
      got.state.resize(centre_.length);
      const Stopwatch watch;
      place_.memory.Get(centre_, 0, got.state, &version).Wait();
      fetch_s_ = fetch_s_ > 0 ? 0.5 * (fetch_s_ + watch.seconds()) : watch.seconds();
      newest_ = got.version = int64_t(version);
      break;
    } catch (const MemoryRenewed&) {  // rank 0, or whoever keeps the box, is another one
      opened_ = false;
    }
  }
  std::lock_guard lock(mutex_);
  reply_ = std::move(got);
  changed_.notify_all();
}

void MemoryCentre::Add(std::span<const float> values, const CentreNote& note,
                       std::optional<int64_t> fence) {
  const MemoryGuard guard{fences_, uint64_t(note.client), fence.value_or(0)};
  uint64_t version = 0;
  leases_.AwaitReader(newest_);
  try {
    place_.memory.Accumulate(centre_, 0, values, PackNote(note), &version, fence ? &guard : nullptr)
        .Wait();
    newest_ = int64_t(version);
    refused_ = 0;
  } catch (const MemoryRenewed&) {
    leases_.Void({}, note.leases);
    throw;
  } catch (const GuardChanged&) {
    Refused(note, fence);
  } catch (const PeerLost&) {
    throw;
  } catch (const Error& error) {  // values that are not finite
    if (++refused_ >= PushGate::kDiverged) {
      throw Error(
          "the last {} adds of this worker were refused: {}; lower optimizer.lr or set "
          "trainer.clip",
          refused_, error.what());
    }
    Refused(note, fence);
  }
}

// Its other leases shall count no more than this add: the fence moves, and grants that are on their
// way here carry an older one.
void MemoryCentre::Refused(const CentreNote& note, std::optional<int64_t> fence) {
  if (fence) {
    fence = 0;
    try {
      fence = place_.memory.FetchAdd(fences_, uint64_t(note.client), 1) + 1;
    } catch (const MemoryRenewed&) {
      opened_ = false;
    }
  }
  leases_.Void({note.client, fence}, note.leases);
}

}  // namespace trireme
