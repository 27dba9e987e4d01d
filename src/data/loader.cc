#include "data/loader.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/start_thread.h"
#include "base/team.h"

namespace trireme {
namespace {

// Of values: some tens of microseconds of copying, several times what waking a thread costs.
constexpr int64_t kWorthAThread = 65'536;

// Reading the clocks costs as much as filling this many values: time every 16th such request.
constexpr int64_t kTinyRequest = 4096;
constexpr int kTinyInterval = 16;

constexpr int64_t kMaxThreads = 1024;

// What a stretch of time must hold to tell whether threads help.
constexpr int64_t kTunedRequests = 8;
constexpr double kTuned_s = 0.25;

}  // namespace

LoaderThreads ChooseLoaderThreads(const IntOrWord& threads, int64_t values_per_request, int cores,
                                  int computing, bool decodes) {
  if (!threads.is_word()) {
    if (threads.number > kMaxThreads) {
      throw UsageError("data.threads must be at most {}, got {}", kMaxThreads, threads.number);
    }
    const int number = static_cast<int>(threads.number);
    return {number, number};
  }
  if (decodes) {
    const int most = static_cast<int>(std::clamp<int64_t>(cores, 1, kMaxThreads));
    return {std::clamp(cores - computing, 1, most), most};
  }
  const int64_t parts = std::min(values_per_request / kWorthAThread, kMaxThreads);
  if (cores <= 1 || parts == 0) return {0, 0};
  const int number = std::clamp(cores - computing, 1, static_cast<int>(parts));
  return {number, number};
}

Loader::Loader(Feed feed, std::vector<Slot> slots, const LoaderThreads& threads)
    : feed_(std::move(feed)),
      slots_(std::move(slots)),
      requests_(slots_.size()),
      began_(Now()),
      ready_since_(began_),
      tuner_(threads) {
  for (const Slot& slot : slots_) {
    TRIREME_ASSERT(!feed_.mixes_labels() || slot.mixes.size() == slot.labels.size());
  }
  TRIREME_ASSERT(!slots_.empty() && threads.first >= 0);
  SetThreads(threads.first);
}

// Threads that are too many end with the piece that they are filling; nobody waits for them now.
void Loader::SetThreads(int count) {
  while (static_cast<int>(threads_.size()) > count) {
    threads_.back().request_stop();
    retired_.push_back(std::move(threads_.back()));
    threads_.pop_back();
  }
  threads_.reserve(count);
  while (static_cast<int>(threads_.size()) < count) {
    threads_.push_back(StartThread(
        fmt::format("loader thread {} of {} (data.threads)", threads_.size() + 1, count),
        [this](std::stop_token stop) { RunThread(std::move(stop)); }));
  }
}

void Loader::Tune() {
  if (tuned_taken_ >= 0 && taken_ - tuned_taken_ < kTunedRequests) return;
  const LoaderNumbers now = numbers();
  if (tuned_taken_ >= 0) {
    const double seconds = now.seconds - tuned_at_.seconds;
    if (seconds < kTuned_s) return;
    tuner_.Add(seconds, now.waited_s - tuned_at_.waited_s, taken_ - tuned_taken_);
    try {
      if (tuner_.threads() != now.threads) SetThreads(tuner_.threads());
    } catch (const Error&) {  // one more cannot be started: those that there are go on
    }
  }
  tuned_at_ = now;
  tuned_taken_ = taken_;
}

void Loader::Want(const Positions& range) {
  TRIREME_ASSERT(HasRoom());
  TRIREME_ASSERT(range.begin >= 0 && range.begin < range.end && range.end <= feed_.size());
  const int slot = static_cast<int>(wanted_ % num_slots());
  TRIREME_ASSERT(static_cast<size_t>(range.count()) <=
                 slots_[slot].Room(static_cast<size_t>(feed_.shape().size())));
  Request& next = requests_[slot];
  next.filled = {.slot = slot, .count = static_cast<int>(range.count()), .range = range};
  if (threads_.empty()) {
    ++wanted_;
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    next.threads = static_cast<int64_t>(threads_.size());
    next.claimed = next.finished = 0;
    next.error = nullptr;
    ++wanted_;
  }
  work_.notify_all();
}

const Filled& Loader::Take() {
  TRIREME_ASSERT(taken_ < wanted_);
  Request& oldest = request(taken_);
  if (threads_.empty()) {
    TakeInline(oldest);
  } else {
    TakeFromThreads(oldest);
  }
  ++taken_;
  if (!tuner_.settled()) Tune();
  return oldest.filled;
}

void Loader::Release() {
  TRIREME_ASSERT(released_ < taken_);
  ++released_;
}

LoaderNumbers Loader::numbers() {
  const std::lock_guard lock(mutex_);
  if (!threads_.empty()) CountReady(0);
  LoaderNumbers now = numbers_;
  now.threads = static_cast<int>(threads_.size());
  now.ready = ready_;
  now.seconds = Now() - began_;
  now.taken = taken_;
  return now;
}

void Loader::CountReady(int change) {
  const double now = Now();
  numbers_.ready_s += ready_ * (now - ready_since_);
  ready_since_ = now;
  ready_ += change;
}

void Loader::TakeInline(Request& oldest) {
  const Filled& filled = oldest.filled;
  const Slot& slot = slots_[filled.slot];
  const bool tiny = filled.count * Work() <= kTinyRequest;
  if (tiny && taken_ % kTinyInterval != 0) {
    feed_.Fill(filled.range, slot);
    return;
  }
  FetchTimes times;
  const Stopwatch watch;
  feed_.Fill(filled.range, slot, &times);
  const int stands_for = tiny ? kTinyInterval : 1;
  numbers_.waited_s += watch.seconds() * stands_for;
  numbers_.fetched.Add(times, stands_for);
}

void Loader::TakeFromThreads(Request& oldest) {
  std::unique_lock lock(mutex_);
  numbers_.ready_at_take += ready_;
  const auto is_there = [&] { return oldest.finished == oldest.filled.count; };
  if (!is_there()) {
    const Stopwatch watch;
    done_.wait(lock, is_there);
    numbers_.waited_s += watch.seconds();
  }
  if (oldest.error) std::rethrow_exception(oldest.error);
  CountReady(-1);
}

int64_t Loader::Work() const {
  return slots_[0].numbers.empty() ? feed_.shape().size() : kNumberWork;
}

// A share of what is left (see ShareOf).
Positions Loader::Claim(Request& request) const {
  const Positions& range = request.filled.range;
  const int64_t worth = feed_.decodes() ? 1 : std::max<int64_t>(1, kWorthAThread / Work());
  const int64_t count = ShareOf(range.count() - request.claimed, request.threads, worth);
  const int64_t begin = range.begin + request.claimed;
  request.claimed += count;
  return {range.epoch, begin, begin + count};
}

void Loader::FillPiece(const Filled& filled, const Positions& piece, FetchTimes& times) const {
  const auto first = static_cast<size_t>(piece.begin - filled.range.begin);
  const auto values = static_cast<size_t>(feed_.shape().size());
  feed_.Fill(piece, slots_[filled.slot].Part(first, static_cast<size_t>(piece.count()), values),
             &times);
}

void Loader::RunThread(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (work_.wait(lock, stop, [&] { return unclaimed_ < wanted_; })) {
    if (stop.stop_requested()) return;
    Request& current = request(unclaimed_);
    const Positions piece = Claim(current);
    if (current.claimed == current.filled.count) ++unclaimed_;
    lock.unlock();
    std::exception_ptr error;
    FetchTimes times;
    try {
      FillPiece(current.filled, piece, times);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !current.error) current.error = error;
    numbers_.fetched.Add(times);
    current.finished += piece.count();
    if (current.finished < current.filled.count) continue;
    CountReady(1);
    done_.notify_one();
  }
}

}  // namespace trireme
