#include "strategy/client.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/clock.h"
#include "base/error.h"
#include "strategy/protocol.h"

namespace trireme {
namespace {

uint64_t BytesOf(const Message& message) {
  return message.ints.size() * sizeof(int64_t) + message.body.size() * sizeof(float);
}

}  // namespace

Client::Client(Link& link) : link_(link), centre_{kFetch}, snapshot_{kSnapshot} {}

Client::~Client() {
  try {
    if (sender_) sender_->Drain();
    link_.Send({.kind = kBye});
  } catch (const std::exception&) {  // the run ends with an error that is known already
  }
}

Client::Answer Client::Claim(bool holds, Lease& lease) {
  if (claimed_at_ > 0) step_s_ = 0.5 * (step_s_ + Now() - std::exchange(claimed_at_, 0));
  for (;;) {
    while (Take(After(0))) {
    }
    if (void_) {
      void_ = false;
      return Answer::kVoid;
    }
    if (!granted_.empty()) {
      lease = granted_.front();
      granted_.pop_front();
      claimed_at_ = Now();
      if (2 * granted_.size() <= granted_at_once_) AskForLeases(true);
      return Answer::kLease;
    }
    if (ended_) return Answer::kEnd;
    if (answer_) {
      const int kind = std::exchange(answer_, {})->kind;
      if (kind == kEpochEnd) return Answer::kEpochEnd;
      if (kind == kDrain && holds) return Answer::kDrain;
    }
    AskForLeases(holds);
    Until("a lease", [&] { return !granted_.empty() || answer_ || void_ || ended_ || !asked_; });
  }
}

// Enough for the time that an answer may take on a busy machine; a slow step needs only one.
void Client::AskForLeases(bool holds) {
  constexpr double kAhead_s = 0.02;
  if (asked_ || answer_ || ended_) return;
  const int64_t wants = std::clamp<int64_t>(int64_t(kAhead_s / std::max(step_s_, 1e-6)), 1, 64);
  Send({.kind = kAsk, .ints = {holds, wants}});
  asked_ = true;
}

Client::Centre Client::Fetch(size_t floats) {
  Message reply = Await(centre_);
  if (reply.body.size() != floats) {
    throw Error("the server's centre has {} values, this worker's state {}", reply.body.size(),
                floats);
  }
  return {reply.ints[0], std::move(reply.body)};
}

void Client::Push(const Event& ready, Centre change, std::span<const int64_t> leases) {
  Message message{.kind = kPush, .ints = {change.version}, .body = std::move(change.state)};
  message.ints.insert(message.ints.end(), leases.begin(), leases.end());
  Send(std::move(message), ready);
}

void Client::Stop() {
  if (stopped_ || ended_) return;
  stopped_ = true;
  Send({.kind = kStop});
}

void Client::Leave() {
  if (ended_) return;
  Stop();
  Send({.kind = kLeave});
  renewed_ = false;
  Until("the others' last updates", [&] {
    if (renewed_) {
      renewed_ = false;
      Send({.kind = kStop});
      Send({.kind = kLeave});
    }
    return ended_;
  });
}

const std::vector<float>& Client::Snapshot() {
  image_ = {};
  image_ = Await(snapshot_);
  return image_.body;
}

void Client::Save(StateWriter& writer) const {
  const std::span<const int64_t> ints(image_.ints);
  TRIREME_ASSERT(ints.size() >= 2);  // after Snapshot
  const size_t leases = size_t(ints[1]);
  writer.Int("centre.version", ints[0]);
  writer.Ints("centre.leases", ints.subspan(2, leases));
  writer.Ints("centre.staleness", ints.subspan(2 + leases));
}

void Client::Prefetch() { Ask(centre_); }

void Client::Ask(Request& request) {
  if (request.asked || request.answer) return;
  Send({.kind = request.word});
  request.asked = true;
}

Message Client::Await(Request& request) {
  Until("the centre", [&] {
    Ask(request);
    return request.answer.has_value();
  });
  return *std::exchange(request.answer, {});
}

void Client::Send(Message message, const Event& ready) {
  volume_.sent += BytesOf(message);
  if (!sender_ && ready.state()) {
    sender_ = std::make_unique<Courier<Outgoing>>(
        [this](Outgoing& out) {
          out.ready.Wait();
          link_.Send(std::move(out.message));
        },
        [](std::string_view) {});  // the link's other end has a deadline
  }
  if (sender_) {
    sender_->Push({ready, std::move(message)});  // in order, behind those that are not ready
  } else {
    link_.Send(std::move(message));
  }
}

void Client::Until(const char* what, FunctionRef<bool()> done) {
  const Stopwatch watch;
  while (!done()) {
    if (!Take(After(link_.timeout_s()))) {
      throw PeerLost(
          "no word from the server for {:g} s while waiting for {} (transport.timeout_s)",
          link_.timeout_s(), what);
    }
  }
  waited_s_ += watch.seconds();
}

bool Client::Take(Deadline deadline) {
  Message message;
  switch (link_.Receive(message, deadline)) {
    case Arrival::kNothing:
      return false;
    case Arrival::kMessage:
      Sort(std::move(message));
      break;
    case Arrival::kRenewed:  // it knows of nothing asked, and of leases what its snapshot held
      answer_.reset();
      granted_.clear();
      asked_ = false;
      for (Request* request : {&centre_, &snapshot_}) {
        request->asked = false;
        request->answer.reset();
      }
      renewed_ = void_ = true;
      break;
    case Arrival::kGone:
    case Arrival::kBack:
      break;
  }
  return true;
}

void Client::Sort(Message message) {
  volume_.received += BytesOf(message);
  const auto numbers = [&](size_t least) {
    if (message.ints.size() >= least) return;
    throw Error("the server sent {} numbers where {} belong (word {})", message.ints.size(), least,
                message.kind);
  };
  switch (message.kind) {
    case kGrant:
      numbers(4);
      asked_ = false;
      granted_at_once_ = (message.ints.size() - 1) / 3;
      for (size_t i = 1; i + 3 <= message.ints.size(); i += 3) {
        granted_.push_back({.id = message.ints[i],
                            .epoch = message.ints[0],
                            .begin = message.ints[i + 1],
                            .end = message.ints[i + 2]});
      }
      break;
    case kEnd:
      ended_ = true;
      [[fallthrough]];
    case kDrain:
    case kEpochEnd:
      asked_ = false;
      answer_ = std::move(message);
      break;
    case kRefused:
      granted_.clear();
      void_ = true;
      break;
    case kCentre:
      numbers(1);
      centre_.asked = false;
      centre_.answer = std::move(message);
      break;
    case kImage:
      numbers(2);
      numbers(2 + size_t(std::clamp<int64_t>(message.ints[1], 0, int64_t(1) << 40)));
      snapshot_.asked = false;
      snapshot_.answer = std::move(message);
      break;
    case kWait:
      break;
    default:
      throw Error("the server sent a word that no server says ({})", message.kind);
  }
}

}  // namespace trireme
