#include "strategy/exchange/handout.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/start_thread.h"
#include "strategy/server/protocol.h"

namespace trireme {
namespace {

constexpr double kBoardLook_s = 0.05;  // who waits for the board looks whether it shall end

}  // namespace

Handout::Walk::Walk(const LeaseTable::Run& run, const HandoutNews& news)
    : table_(run, news.first_id) {
  table_.Load(news.table, news.first_id);
}

// Only the order matters here: each one is done at once.
std::optional<Lease> Handout::Walk::Next() {
  for (;;) {
    if (const auto lease = table_.Take(kNobody)) {
      table_.Close(lease->id);
      ++walked_;
      return lease;
    }
    if (!table_.epoch_over() || table_.last_epoch()) return {};
    table_.NextEpoch();
  }
}

Handout::Handout(const Place& place, Ahead ahead, ServerLine& line)
    : place_(place),
      ahead_(ahead),
      line_(line),
      step_s_(ahead.always ? 0.002 : 1),
      thread_(StartThread("the thread that takes leases",
                          [this](const std::stop_token& stop) { Serve(stop); })) {}

// ---- the worker's thread

LeaseSource::Answer Handout::Claim(bool holds, Lease& lease) {
  if (claimed_at_ > 0) step_s_ = 0.5 * (step_s_ + Now() - std::exchange(claimed_at_, 0));
  std::unique_lock lock(mutex_);
  for (;;) {
    if (error_) std::rethrow_exception(error_);
    if (std::exchange(void_, false)) return Answer::kVoid;
    const bool done = over_ || (ready_.empty() && (finished_ || (stopped_ && wanted_ == 0)));
    // The epoch may be waiting for what this worker has. What it pushed last may turn out to be
    // void, and nobody else does it again; or to have failed, and nobody else says so.
    if ((done || AtBorder()) && (holds || !settled_)) {
      settled_ = true;
      return Answer::kDrain;
    }
    if (done) return Answer::kEnd;
    if (!ready_.empty() && !AtBorder()) {
      lease = ready_.front();
      ready_.pop_front();
      open_.emplace(lease.id, lease);
      claimed_at_ = Now();
      settled_ = false;
      if (2 * int64_t(ready_.size()) <= drawn_at_once_) WantMore();
      return Answer::kLease;
    }
    if (ready_.empty()) WantMore();
    const Stopwatch watch;
    changed_.notify_all();
    changed_.wait(lock);
    waited_s_ += watch.seconds();
  }
}

// Enough for the time that drawing takes; a slow step needs only one.
void Handout::WantMore() {
  constexpr double kAhead_s = 0.02;
  if (wanted_ > 0 || finished_ || over_ || stopped_) return;
  const double seconds = kAhead_s + (ahead_.always ? 4 * draw_s_ : 0);
  wanted_ = std::clamp<int64_t>(int64_t(seconds / std::max(step_s_, 1e-6)), 1, ahead_.most);
  changed_.notify_all();
}

void Handout::AwaitServer() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return first_ || error_; });
  if (error_) std::rethrow_exception(error_);
}

bool Handout::holds_void() const {
  std::lock_guard lock(mutex_);
  return void_;
}

void Handout::Stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
}

std::optional<LeaseSource::Standing> Handout::Release(std::span<const int64_t> leases) {
  std::lock_guard lock(mutex_);
  const bool own = std::ranges::all_of(leases, [&](int64_t id) { return open_.contains(id); });
  if (!own) return {};
  for (const int64_t id : leases) open_.erase(id);
  return Standing{.client = place_.client, .fence = {}};
}

// What was pushed is found where it was drawn.
void Handout::Void(const Standing&, std::span<const int64_t> leases) {
  {
    const auto lock = line_.Lock();
    line_.Send({{.kind = kAnew}});
  }
  std::lock_guard lock(mutex_);
  std::map<int64_t, Lease> again = std::exchange(open_, {});
  if (!leases.empty()) {
    Walk walk(place_.run, *first_);
    const int64_t last = std::ranges::max(leases);
    for (auto lease = walk.Next(); lease && lease->id <= last; lease = walk.Next()) {
      if (std::ranges::find(leases, lease->id) != leases.end()) again.emplace(lease->id, *lease);
    }
  }
  for (const auto& [id, lease] : again) ready_.push_back(lease);
  std::ranges::sort(ready_, {}, &Lease::id);
  void_ = true;
  changed_.notify_all();
}

void Handout::AwaitReader(int64_t version) {
  for (const Deadline deadline = After(place_.timeout_s); version - reader_at_ >= kMostUnread;) {
    uint64_t told = 0;
    reader_at_ = News(told).read;
    if (version - reader_at_ < kMostUnread) return;
    if (After(0) >= deadline) {
      throw PeerLost(
          "rank 0 has not read what was added to the centre for {:g} s "
          "(transport.timeout_s)",
          place_.timeout_s);
    }
    place_.memory.Wait(board_, told + 1, std::min(deadline, After(kBoardLook_s)));
  }
}

// ---- its own thread

void Handout::Serve(const std::stop_token& stop) {
  try {
    Begin();
    for (;;) {
      int64_t most = 0;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, stop, [&] { return wanted_ > 0 || (AtBorder() && !over_); });
        if (stop.stop_requested()) return;
        most = wanted_;
      }
      if (most > 0) {
        Draw(most);
      } else {
        AwaitEpoch();
      }
    }
  } catch (const std::exception&) {
    std::lock_guard lock(mutex_);
    error_ = std::current_exception();
    changed_.notify_all();
  }
}

void Handout::Begin() {
  const Deadline deadline = After(place_.timeout_s);
  const auto begun = [&] {
    try {
      tickets_ = place_.memory.Open(kTicketRegion, deadline);
      board_ = place_.memory.Open(kBoardRegion, deadline);
      return place_.memory.Wait(board_, 1, deadline) >= 1;
    } catch (const PeerLost&) {
      throw;
    } catch (const Error&) {  // a region is not there
      if (After(0) < deadline) throw;
      return false;
    }
  };
  if (!begun()) {
    throw PeerLost("rank 0 has not said what is to be done for {:g} s (transport.timeout_s)",
                   place_.timeout_s);
  }
  Read();
}

HandoutNews Handout::News(uint64_t& version) const {
  std::vector<int64_t> values(board_.length);
  place_.memory.Get(board_, 0, values, &version).Wait();
  if (auto news = HandoutNews::Unpack(std::move(values))) return *std::move(news);
  throw Error("rank 0's leases have {} numbers", board_.length);
}

void Handout::Read() {
  HandoutNews news = News(read_);
  heard_at_ = Now();
  if (!walk_) walk_.emplace(place_.run, news);
  std::lock_guard lock(mutex_);
  const bool open = place_.run.border == EpochBorder::kOpen;
  allowed_ = open ? std::numeric_limits<int64_t>::max() : news.epoch;
  over_ |= news.stopped;
  if (!first_) first_ = std::move(news);
  changed_.notify_all();
}

// No more than half this worker's share of what is left: the end shall not find all waiting for one
// (as ParameterServer::Grant).
void Handout::Draw(int64_t most) {
  const Stopwatch watch;
  const int64_t share = walk_->left() / (2 * place_.run.size * place_.clients);
  const int64_t count = std::clamp<int64_t>(share, 1, most);
  const int64_t first = place_.memory.FetchAdd(tickets_, 0, count);
  std::deque<Lease> drawn;
  bool finished = false;
  while (first < kHandoutStopped && !finished && walk_->walked() < first + count) {
    const auto lease = walk_->Next();
    finished = !lease;
    if (lease && walk_->walked() > first) drawn.push_back(*lease);
  }
  std::lock_guard lock(mutex_);
  over_ |= first >= kHandoutStopped;
  finished_ = finished;
  wanted_ = 0;
  drawn_at_once_ = int64_t(drawn.size());
  draw_s_ = watch.seconds();
  ready_.insert(ready_.end(), drawn.begin(), drawn.end());
  changed_.notify_all();
}

void Handout::AwaitEpoch() {
  if (place_.memory.Wait(board_, read_ + 1, After(kBoardLook_s)) > read_) return Read();
  if (Now() - heard_at_ < place_.timeout_s) return;
  throw PeerLost(
      "rank 0 has been silent for {:g} s while this worker waits for the next epoch "
      "(transport.timeout_s)",
      place_.timeout_s);
}

}  // namespace trireme
