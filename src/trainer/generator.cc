#include "trainer/generator.h"

#include <algorithm>

#include "base/assert.h"
#include "base/clock.h"
#include "base/start_thread.h"

namespace trireme {
namespace {

std::vector<Slot> CutIntoSlots(const Slot& all, size_t count) {
  std::vector<Slot> slots;
  const size_t samples = all.labels.size() / count, values = all.inputs.size() / all.labels.size();
  for (size_t i = 0; i < count; ++i) slots.push_back(all.Part(i * samples, samples, values));
  return slots;
}

}  // namespace

Generator::Generator(Feed feed, const Plan& plan, int shard_capacity, int steps, int threads)
    : plan_(plan),
      inputs_(size_t(steps) * size_t(plan.shards) * size_t(shard_capacity) *
              size_t(feed.shape().size())),
      labels_(size_t(steps) * size_t(plan.shards) * size_t(shard_capacity)),
      mixes_(feed.mixes_labels() ? labels_.size() : 0),
      slots_(CutIntoSlots({.inputs = inputs_, .labels = labels_, .mixes = mixes_},
                          size_t(steps) * size_t(plan.shards))),
      loader_(std::move(feed), slots_, threads),
      entries_(slots_.size()),
      began_(Now()),
      ready_since_(began_) {
  TRIREME_ASSERT(steps >= 2);  // some are still released while the next are taken
  numbers_.threads = std::max(1, threads);
  thread_ = StartThread("the data generator's thread",
                        [this](const std::stop_token& stop) { Run(stop); });
}

// ---- workers

int64_t Generator::Find(int64_t step, int shard) {
  for (int64_t number = freed_; number < filled_; ++number) {
    if (entry(number).step == step && entry(number).shard == shard) return number;
  }
  return -1;
}

Generator::Samples Generator::Take(int64_t step, int shard) {
  std::unique_lock lock(mutex_);
  if (next_step_ < 0) {
    next_step_ = step;
    room_.notify_one();
  }
  int64_t number = Find(step, shard);
  numbers_.ready_at_take += ready_;
  if (number < 0) {
    ++waiting_;
    WakeForRoom();
    here_.wait(lock, [&] { return error_ || (number = Find(step, shard)) >= 0; });
    --waiting_;
  }
  if (number < 0) std::rethrow_exception(error_);
  const Filled& filled = entry(number).filled;
  const Slot& slot = slots_[size_t(filled.slot)];
  ++numbers_.requests;
  CountReady(-1, -filled.count);
  return {
      .inputs = slot.inputs.first(slot.inputs.size() / slot.labels.size() * size_t(filled.count)),
      .labels = slot.labels.first(size_t(filled.count)),
      .mixes = slot.mixes.first(slot.mixes.empty() ? 0 : size_t(filled.count)),
      .range = filled.range,
      .number = number};
}

void Generator::Release(int64_t number) {
  const std::lock_guard lock(mutex_);
  entry(number).released = true;
  ++released_;
  WakeForRoom();
}

// The generator is woken for half a queue of room, or when a worker waits: not for every shard.
bool Generator::RoomIsWanted() {
  return CanFree() && (waiting_ > 0 || 2 * (released_ - freed_) >= int64_t(entries_.size()));
}

void Generator::WakeForRoom() {
  if (RoomIsWanted()) room_.notify_one();
}

void Generator::ShowQueue(SpanSink* spans) {
  const std::lock_guard lock(mutex_);
  spans_ = spans;
}

LoaderRecord Generator::record() {
  const std::lock_guard lock(mutex_);
  CountReady(0, 0);
  numbers_.seconds = Now() - began_;
  return numbers_;
}

void Generator::CountReady(int shards, int64_t samples) {
  const double now = Now();
  numbers_.ready_s += ready_ * (now - ready_since_);
  ready_since_ = now;
  ready_ += shards;
  ready_samples_ += samples;
  if (samples && spans_ && spans_->on()) {
    spans_->Add(Track::kQueue, SpanKind::kQueue, now, now, spans_->step(), int(ready_samples_));
  }
}

// ---- the generator's thread

// The next one that is not empty; false: there is none.
bool Generator::NextShard(Shard& shard) {
  while (next_step_ < plan_.steps) {
    if (next_shard_ == 0) WorkOf(plan_, next_step_, 0, 1, next_);
    while (next_shard_ < next_.shards.size()) {
      shard = next_.shards[next_shard_++];
      if (shard.size()) return true;
    }
    next_shard_ = 0;
    ++next_step_;
  }
  return false;
}

void Generator::AskForMore() {
  for (; CanFree(); ++freed_) loader_.Release();
  Shard shard;
  while (loader_.HasRoom() && NextShard(shard)) {
    loader_.Want({.epoch = next_.epoch, .begin = shard.begin, .end = shard.end});
    entry(asked_++) = {.step = next_.step, .shard = shard.index};
  }
}

bool Generator::AwaitRequest(std::unique_lock<std::mutex>& lock, const std::stop_token& stop) {
  if (!room_.wait(lock, stop, [&] { return next_step_ >= 0; })) return false;
  for (;;) {
    if (stop.stop_requested()) return false;
    AskForMore();
    if (filled_ < asked_) return true;
    const bool full = !loader_.HasRoom();  // else there is nothing left to fetch
    const Stopwatch watch;
    room_.wait(lock, stop, [&] { return RoomIsWanted(); });
    if (full) numbers_.full += watch.seconds();
  }
}

void Generator::Run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (AwaitRequest(lock, stop)) {
    Filled filled;
    std::exception_ptr error;
    lock.unlock();
    try {
      filled = loader_.Take();
    } catch (const std::exception&) {
      error = std::current_exception();
    }
    const FetchTimes fetched = loader_.numbers().fetched;
    lock.lock();
    numbers_.read = fetched.read;
    numbers_.decode = fetched.decode;
    numbers_.resize = fetched.resize;
    numbers_.cpu = fetched.cpu;
    if (error) {
      error_ = error;
      here_.notify_all();
      return;
    }
    entry(filled_++).filled = filled;
    CountReady(1, filled.count);
    if (waiting_ > 0) here_.notify_all();
  }
}

}  // namespace trireme
