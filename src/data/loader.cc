#include "data/loader.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/assert.h"
#include "base/error.h"

namespace trireme {
namespace {

using Clock = std::chrono::steady_clock;

// Of values: some tens of microseconds of copying, several times what waking a thread costs.
constexpr int64_t kWorthAThread = 65'536;

// Reading the clock twice costs as much as filling this many values: time every 16th such request.
constexpr int64_t kTinyRequest = 512;
constexpr int64_t kTinyInterval = 16;

constexpr int64_t kMaxThreads = 1024;
constexpr int kMostDecoders = 8;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

int ChooseLoaderThreads(const IntOrWord& threads, int64_t values_per_request, int cores,
                        bool decodes) {
  if (!threads.is_word()) {
    if (threads.number > kMaxThreads) {
      throw UsageError("data.threads must be at most {}, got {}", kMaxThreads, threads.number);
    }
    return static_cast<int>(threads.number);
  }
  if (decodes) return std::clamp(cores, 1, kMostDecoders);
  return cores > 1 && values_per_request >= kWorthAThread ? 1 : 0;
}

Loader::Loader(Feed feed, std::vector<Slot> slots, int threads)
    : feed_(std::move(feed)), slots_(std::move(slots)), requests_(slots_.size()) {
  TRIREME_ASSERT(!slots_.empty() && threads >= 0);
  threads_.reserve(threads);
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this](std::stop_token stop) { RunThread(std::move(stop)); });
  }
}

void Loader::Want(const Positions& range) {
  TRIREME_ASSERT(HasRoom());
  TRIREME_ASSERT(range.begin >= 0 && range.begin <= range.end && range.end <= feed_.size());
  const int slot = static_cast<int>(wanted_ % num_slots());
  TRIREME_ASSERT(range.count() <= static_cast<int64_t>(slots_[slot].labels.size()) &&
                 range.count() * feed_.shape().size() <=
                     static_cast<int64_t>(slots_[slot].inputs.size()));
  Request& next = requests_[slot];
  next.filled = {.slot = slot, .count = static_cast<int>(range.count()), .range = range};
  if (threads_.empty()) {
    ++wanted_;
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    next.pieces = CountPieces(range.count());
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
  return oldest.filled;
}

void Loader::Release() {
  TRIREME_ASSERT(released_ < taken_);
  ++released_;
}

void Loader::TakeInline(Request& oldest) {
  const Filled& filled = oldest.filled;
  const Slot& slot = slots_[filled.slot];
  const bool tiny = filled.count * feed_.shape().size() <= kTinyRequest;
  if (tiny && taken_ % kTinyInterval != 0) {
    feed_.Fill(filled.range, slot.inputs.data(), slot.labels.data());
    return;
  }
  const Clock::time_point begin = Clock::now();
  feed_.Fill(filled.range, slot.inputs.data(), slot.labels.data());
  waited_s_ += SecondsSince(begin) * (tiny ? kTinyInterval : 1);
}

void Loader::TakeFromThreads(Request& oldest) {
  const Clock::time_point begin = Clock::now();
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return oldest.finished == oldest.pieces; });
  waited_s_ += SecondsSince(begin);
  if (oldest.error) std::rethrow_exception(oldest.error);
}

int Loader::CountPieces(int64_t count) const {
  const int64_t worth = feed_.decodes() ? count : count * feed_.shape().size() / kWorthAThread;
  const int64_t most = std::min<int64_t>(count, static_cast<int64_t>(threads_.size()));
  return static_cast<int>(std::max<int64_t>(1, std::min(worth, most)));
}

void Loader::FillPiece(const Request& whole, int piece) const {
  const Positions& range = whole.filled.range;
  const int64_t first = range.count() * piece / whole.pieces;
  const int64_t last = range.count() * (piece + 1) / whole.pieces;
  const Slot& slot = slots_[whole.filled.slot];
  feed_.Fill({range.epoch, range.begin + first, range.begin + last},
             slot.inputs.data() + first * feed_.shape().size(), slot.labels.data() + first);
}

void Loader::RunThread(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (work_.wait(lock, stop, [&] { return unclaimed_ < wanted_; })) {
    if (stop.stop_requested()) return;
    Request& current = request(unclaimed_);
    const int piece = current.claimed++;
    if (current.claimed == current.pieces) ++unclaimed_;
    lock.unlock();
    std::exception_ptr error;
    try {
      FillPiece(current, piece);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !current.error) current.error = error;
    if (++current.finished == current.pieces) done_.notify_one();
  }
}

}  // namespace trireme
