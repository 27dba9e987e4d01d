#include "strategy/exchange/lease_client.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "strategy/server/protocol.h"

namespace trireme {

LeaseClient::LeaseClient(ServerLine& line, Ahead ahead)
    : line_(line), ahead_(ahead), step_s_(ahead.always ? 0.002 : 1) {}

LeaseClient::Answer LeaseClient::Claim(bool holds, Lease& lease) {
  if (claimed_at_ > 0) step_s_ = 0.5 * (step_s_ + Now() - std::exchange(claimed_at_, 0));
  auto lock = line_.Lock();
  for (;;) {
    if (std::exchange(void_, false)) return Answer::kVoid;
    if (stopped_) {
      if (holds) return Answer::kDrain;
      line_.Send({{.kind = kLeave}});
      return Answer::kEnd;
    }
    if (!granted_.empty()) {
      lease = granted_.front();
      granted_.pop_front();
      claimed_at_ = Now();
      if (2 * granted_.size() <= granted_at_once_) AskForLeases(true);
      return Answer::kLease;
    }
    if (ended_) return Answer::kEnd;
    if (std::exchange(drain_, false) && holds) return Answer::kDrain;
    AskForLeases(holds);
    line_.Until(lock, "a lease",
                [&] { return !granted_.empty() || drain_ || void_ || ended_ || !asked_; });
  }
}

void LeaseClient::AwaitServer() {
  auto lock = line_.Lock();
  if (answered_) return;
  AskForLeases(false);
  line_.Until(lock, "its first answer", [&] { return answered_ || void_; });
}

// Enough for the time that an answer takes, and may take on a busy machine; a slow step needs only
// one. When half of them are used the next are asked for.
void LeaseClient::AskForLeases(bool holds) {
  constexpr double kAhead_s = 0.02;
  if (asked_ || drain_ || ended_) return;
  const auto steps = [&](double seconds) {
    return std::clamp<int64_t>(int64_t(seconds / std::max(step_s_, 1e-6)), 1, ahead_.most);
  };
  const double answer_s = ahead_.always ? answer_s_ : 0;
  line_.Send(
      {{.kind = kAsk, .ints = {holds, steps(4 * answer_s + kAhead_s), steps(2 * answer_s)}}});
  asked_ = true;
  asked_at_ = Now();
}

bool LeaseClient::holds_void() const {
  const auto lock = line_.Lock();
  return void_;
}

bool LeaseClient::Hear(size_t, Message& message) {
  switch (message.kind) {
    case kGrant:
      answered_ = true;
      TakeGrant(message);
      return true;
    case kEnd:
      answered_ = ended_ = true;
      asked_ = false;
      return true;
    case kDrain:
      answered_ = drain_ = true;
      asked_ = false;
      return true;
    case kWait:
      answered_ = true;
      return true;
    case kRefused:  // and whatever the client had asked for is forgotten
      granted_.clear();
      standings_.clear();
      asked_ = false;
      void_ = true;
      return true;
    default:
      return false;
  }
}

void LeaseClient::TakeGrant(const Message& message) {
  RequireNumbers(message, 4);
  asked_ = false;
  TimeAnswer();
  granted_at_once_ = (message.ints.size() - 1) / 3;
  // Behind the leases, where the centre is not the server's.
  const bool fenced = (message.ints.size() - 1) % 3 == 2;
  const int64_t fence = fenced ? message.ints.back() : 0;
  if (fence < least_fence_) return;
  for (size_t i = 1; i + 3 <= message.ints.size(); i += 3) {
    granted_.push_back({.id = message.ints[i],
                        .epoch = message.ints[0],
                        .begin = message.ints[i + 1],
                        .end = message.ints[i + 2]});
    if (fenced) standings_[message.ints[i]] = {.client = *(message.ints.end() - 2), .fence = fence};
  }
}

// One that had to wait for others' work is slower than the link: believed only when it comes again.
void LeaseClient::TimeAnswer() {
  const double seconds = Now() - asked_at_;
  answer_s_ = answer_s_ > 0 ? std::clamp(seconds, 0.9 * answer_s_, 1.5 * answer_s_) : seconds;
}

// It knows of leases what its snapshot held. All servers begin anew when one does; the first may
// not know yet that partitions of this client's pushes are lost.
void LeaseClient::Renewed(size_t server) {
  if (server > 0) line_.Send({{.kind = kAnew}});
  drain_ = asked_ = false;
  granted_.clear();
  standings_.clear();
  least_fence_ = 0;
  void_ = true;
}

std::optional<LeaseSource::Standing> LeaseClient::Release(std::span<const int64_t> leases) {
  const auto lock = line_.Lock();
  std::optional<Standing> oldest;
  for (const int64_t id : leases) {
    const auto found = standings_.find(id);
    if (found == standings_.end()) continue;
    if (id == leases.front()) oldest = found->second;
    standings_.erase(found);
  }
  return oldest;
}

void LeaseClient::Void(const Standing& standing, std::span<const int64_t>) {
  const auto lock = line_.Lock();
  line_.Send({{.kind = kAnew}});
  drain_ = asked_ = false;
  granted_.clear();
  standings_.clear();
  least_fence_ = standing.fence.value_or(0);
  void_ = true;
  line_.Notify();
}

}  // namespace trireme
