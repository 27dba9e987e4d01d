#include "health/rank_watch.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <span>

#include "base/clock.h"
#include "base/error.h"
#include "base/start_thread.h"
#include "strategy/step/tags.h"
#include "transport/collective/broadcast.h"

namespace trireme {
namespace {

using namespace std::chrono_literals;

constexpr auto kTick = 100ms;
constexpr double kLongestTick_s = 0.5;  // a job that a scheduler suspended has not stalled
constexpr auto kBetweenReports = 1000ms;
constexpr double kAnswer_s = 3;   // after which who does not answer is named
constexpr double kComeOut_s = 2;  // of an aborted group
// A stretch of time for which ranks are compared.
constexpr double kStretch_s = 2;
constexpr int64_t kStretchSteps = 4;

}  // namespace

struct RankWatch::Report {
  Status::Moment moment;
  bool leaves = false;
  double since_s = 0;
  int64_t published_step = -1;
  double published_s = 0;
  RankShare totals;
  int unheard = -1;  // see Standing
  double unheard_s = 0;
};

struct RankWatch::Peer {
  Report report;                       // rank 0: the newest
  double age_s = 0;                    // of it
  Report base;                         // rank 0: where the present stretch of time began
  double unheard_s = 0, silent_s = 0;  // by this rank: now; in all, before
};

RankWatch::RankWatch(Setup setup)
    : setup_(std::move(setup)), size_(setup_.group.size()), peers_(size_) {}

RankWatch::~RankWatch() {
  {
    std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  if (clock_.joinable()) clock_.request_stop();
  if (talk_.joinable()) talk_.request_stop();
  changed_.notify_all();
}

void RankWatch::Start() {
  Barrier(setup_.group, kTagWatch);
  clock_ = StartThread("the thread that looks for stalls",
                       [this](std::stop_token stop) { Count(std::move(stop)); });
  talk_ = StartThread("the thread that exchanges stall reports",
                      [this](std::stop_token stop) { Talk(std::move(stop)); });
}

void RankWatch::Publish(const RankShare& totals, int64_t step) {
  wants_.store(false, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  totals_ = totals;
  published_step_ = step;
  published_s_ = Now();
}

std::vector<double> RankWatch::Silences() {
  std::lock_guard lock(mutex_);
  std::vector<double> silences;
  for (const Peer& peer : peers_) {
    silences.push_back(peer.silent_s + (peer.unheard_s > kUnheard_s ? peer.unheard_s : 0));
  }
  return silences;
}

void RankWatch::End() {
  {
    std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  changed_.notify_all();
  if (talk_.joinable()) talk_.join();
  clock_.request_stop();
  changed_.notify_all();
  if (clock_.joinable()) clock_.join();
}

std::string RankWatch::Verdict(const std::exception& error) {
  std::lock_guard lock(mutex_);
  if (!verdict_.empty() || !dynamic_cast<const PeerLost*>(&error)) return verdict_;
  // Another rank's watch found it while this one stood, too.
  constexpr double kReports_s = 1.5;
  return setup_.stall_s > 0 && since_s_ + kReports_s >= setup_.stall_s ? error.what() : "";
}

void RankWatch::Count(std::stop_token stop) {
  Status::Moment seen;
  double last = Now(), heard = last;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, stop, kTick, [] { return false; }) && !stop.stop_requested()) {
    const double now = Now(), passed = std::min(now - last, kLongestTick_s);
    last = now;
    const Status::Moment moment = status_.now();
    since_s_ = moment == seen ? since_s_ + passed : 0;
    seen = moment;
    talking_s_ += passed;
    for (Peer& peer : peers_) peer.age_s += passed;
    if (now - heard > kLongestTick_s) {
      heard = now;
      CountSilences();
    }
    if (verdict_.empty() && !finished_ && !leaving_ && Stalled()) {
      lock.unlock();
      Fail();
      lock.lock();
    }
    const bool stuck = finished_ && setup_.stall_s > 0 && since_s_ >= setup_.stall_s;
    lost_s_ = stuck ? lost_s_ + passed : 0;
    if (lost_s_ < kComeOut_s) continue;
    lost_s_ = -1e9;  // once
    setup_.log.output().ShowLive("");
    setup_.log.Error("watch", "rank {} did not return after the abort; terminating its process",
                     setup_.group.rank());
    if (!setup_.give_up) std::_Exit(1);
    setup_.give_up();
  }
}

// Under mutex_.
void RankWatch::CountSilences() {
  for (int r = 0; r < size_; ++r) {
    if (r == setup_.group.rank()) continue;
    Peer& peer = peers_[r];
    const double before = peer.unheard_s;
    peer.unheard_s = setup_.group.silent_s(r);
    if (before <= kUnheard_s && peer.unheard_s > kUnheard_s) {
      setup_.log.Warn("watch",
                      "rank {} has heard nothing from rank {} for {:.1f} s; probably the link",
                      setup_.group.rank(), r, peer.unheard_s);
    } else if (before > kUnheard_s && peer.unheard_s < before) {
      peer.silent_s += before;
      setup_.log.Warn("watch", "rank {} hears from rank {} again after {:.1f} s",
                      setup_.group.rank(), r, before);
    }
  }
}

// Under mutex_.
bool RankWatch::Stalled() const {
  if (setup_.stall_s == 0 || since_s_ < setup_.stall_s) return false;
  if (!is_root()) return since_s_ >= setup_.stall_s + kAnswer_s && talking_s_ >= kAnswer_s;
  for (int r = 1; r < size_; ++r) {
    const Peer& peer = peers_[r];
    if (peer.report.since_s + peer.age_s < setup_.stall_s) return false;
    // What it said before this rank stood still may be out of date. Who does not answer is named.
    if (peer.age_s > since_s_ && talking_s_ < kAnswer_s) return false;
  }
  return true;
}

// Under mutex_.
Standing RankWatch::StandingOf(int rank) const {
  const bool own = rank == setup_.group.rank();
  const Report report = own ? MakeReport(false) : peers_[rank].report;
  Standing standing{.moment = report.moment,
                    .since_s = report.since_s + (own ? 0 : peers_[rank].age_s),
                    .unheard = report.unheard,
                    .unheard_s = report.unheard_s};
  const bool awaited = is_root() ? rank == awaited_ : rank == 0;
  if (awaited && talking_s_ >= kAnswer_s) standing.silent_s = talking_s_;
  return standing;
}

void RankWatch::Fail() {
  std::string verdict;
  {
    std::lock_guard lock(mutex_);
    std::vector<Standing> all;
    for (int r = 0; r < size_; ++r) {
      if (is_root() || r == 0 || r == setup_.group.rank()) all.push_back(StandingOf(r));
    }
    if (is_root()) {
      for (const std::string& line : DescribeStall(all)) setup_.log.Error("watch", "{}", line);
    }
    verdict_ = verdict = BlameStall(all, setup_.stall_s);
    finished_ = true;
  }
  setup_.log.Error("watch", "{}", verdict);
  setup_.group.Abort(verdict);
}

void RankWatch::Talk(std::stop_token stop) {
  try {
    if (is_root()) {
      Hear();
    } else {
      Tell(stop);
    }
  } catch (const std::exception&) {  // the group is finished; the rank's own thread says why
    std::lock_guard lock(mutex_);
    finished_ = true;
  }
}

void RankWatch::Tell(std::stop_token stop) {
  for (bool leaves = false; !leaves;) {
    Report report;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, stop, kBetweenReports, [&] { return leaving_; });
      if (stop.stop_requested()) return;
      leaves = leaving_;
      report = MakeReport(leaves);
      talking_s_ = 0;
    }
    wants_.store(true, std::memory_order_relaxed);
    setup_.group.Send(0, kTagWatch, std::as_bytes(std::span(&report, 1))).Wait();
    std::lock_guard lock(mutex_);
    talking_s_ = 0;
  }
}

// Under mutex_.
RankWatch::Report RankWatch::MakeReport(bool leaves) const {
  Report report{.moment = status_.now(),
                .leaves = leaves,
                .since_s = since_s_,
                .published_step = published_step_,
                .published_s = published_s_,
                .totals = totals_};
  for (int r = 0; r < size_; ++r) {
    if (peers_[r].unheard_s <= report.unheard_s) continue;
    report.unheard = r;
    report.unheard_s = peers_[r].unheard_s;
  }
  return report;
}

void RankWatch::Hear() {
  std::vector<Report> reports(size_);
  std::vector<bool> left(size_);
  for (int here = size_ - 1; here > 0;) {
    wants_.store(true, std::memory_order_relaxed);
    std::vector<Ticket> tickets(size_);
    for (int r = 1; r < size_; ++r) {
      if (left[r]) continue;
      const std::span<Report> into(&reports[r], 1);
      tickets[r] = setup_.group.Receive(r, kTagWatch, std::as_writable_bytes(into));
    }
    for (int r = 1; r < size_; ++r) {
      if (left[r]) continue;
      {
        std::lock_guard lock(mutex_);
        awaited_ = r;
        talking_s_ = 0;
      }
      tickets[r].Wait();
      std::lock_guard lock(mutex_);
      peers_[r].report = reports[r];
      peers_[r].age_s = 0;
      left[r] = reports[r].leaves;
      here -= left[r];
    }
    std::lock_guard lock(mutex_);
    peers_[0].report = MakeReport(false);
    JudgeTimes();
  }
}

// Under mutex_: compares what the ranks did since the last stretch ended.
void RankWatch::JudgeTimes() {
  double seconds = 0;
  for (const Peer& peer : peers_) {
    const Report &now = peer.report, &base = peer.base;
    if (base.published_step >= 0 && (now.published_s - base.published_s < kStretch_s ||
                                     now.published_step - base.published_step < kStretchSteps)) {
      return;
    }
    if (now.published_step < 0) return;
    seconds += (now.published_s - base.published_s) / size_;
  }
  const bool first = peers_[0].base.published_step < 0;
  std::vector<RankShare> shares(size_);
  for (int r = 0; r < size_ && !first; ++r) {
    const Report &now = peers_[r].report, &base = peers_[r].base;
    // They published at slightly different times.
    const double scale = seconds / (now.published_s - base.published_s);
    shares[r] = {.data = scale * (now.totals.data - base.totals.data),
                 .compute = scale * (now.totals.compute - base.totals.compute),
                 .waited = scale * (now.totals.waited - base.totals.waited)};
  }
  for (Peer& peer : peers_) peer.base = peer.report;
  if (first) return;
  const auto late = late_.Add(shares, seconds);
  if (!late || (named_ && named_->rank == late->rank && named_->cause == late->cause)) return;
  named_ = late;
  setup_.log.Warn("watch", "{}", late->Text());
}

}  // namespace trireme
