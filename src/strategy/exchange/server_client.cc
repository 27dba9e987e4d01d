#include "strategy/exchange/server_client.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/start_thread.h"
#include "flat/arithmetic.h"
#include "flat/staging.h"

namespace trireme {
namespace {

constexpr double kLook_s = 0.05;  // the receiver looks whether it shall end

}  // namespace

ServerClient::ServerClient(std::vector<Holder> servers, Ahead ahead)
    : servers_(std::move(servers)),
      link_(*servers_[0].link),
      ahead_(ahead),
      step_s_(ahead.always ? 0.002 : 1),
      news_(servers_.size()),
      sender_([this](Outgoing& out) { return Dispatch(out); },
              [](std::string_view) {}) {  // the link's other end has a deadline
  for (size_t s = 0; s < servers_.size(); ++s) {
    receivers_.push_back(StartThread("the thread that listens to a server",
                                     [this, s](const std::stop_token& stop) { Receive(stop, s); }));
  }
}

ServerClient::~ServerClient() {
  for (std::jthread& receiver : receivers_) receiver.request_stop();
  try {
    sender_.Drain();
    for (const Holder& server : servers_) server.link->Send({.kind = kBye});
  } catch (const std::exception&) {  // the run ends with an error that is known already
  }
}

// ---- the worker's thread

ServerClient::Answer ServerClient::Claim(bool holds, Lease& lease) {
  if (claimed_at_ > 0) step_s_ = 0.5 * (step_s_ + Now() - std::exchange(claimed_at_, 0));
  std::unique_lock lock(mutex_);
  for (;;) {
    if (std::exchange(void_, false)) return Answer::kVoid;
    if (stopped_) {
      if (holds) return Answer::kDrain;
      Send({{.kind = kLeave}});
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
    Until(lock, "a lease",
          [&] { return !granted_.empty() || drain_ || void_ || ended_ || !asked_; });
  }
}

// Enough for the time that an answer takes, and may take on a busy machine; a slow step needs only
// one. When half of them are used the next are asked for.
void ServerClient::AskForLeases(bool holds) {
  constexpr double kAhead_s = 0.02;
  if (asked_ || drain_ || ended_) return;
  const auto steps = [&](double seconds) {
    return std::clamp<int64_t>(int64_t(seconds / std::max(step_s_, 1e-6)), 1, ahead_.most);
  };
  const double answer_s = ahead_.always ? answer_s_ : 0;
  Send({{.kind = kAsk, .ints = {holds, steps(4 * answer_s + kAhead_s), steps(2 * answer_s)}}});
  asked_ = true;
  asked_at_ = Now();
}

void ServerClient::Prefetch() {
  std::lock_guard lock(mutex_);
  if (!fetching_ && !reply_) AskForCentre();
}

void ServerClient::AskForCentre(bool computes) {
  fetching_ = true;
  partitions_.assign(servers_.size(), {.kind = -1});
  Send({{.kind = kFetch, .ints = {++fetches_, computes}}});
}

ServerClient::Snapshot ServerClient::Fetch(size_t floats, bool computes) {
  std::unique_lock lock(mutex_);
  Until(lock, "the centre", [&] {
    // Also again, when the server is another one.
    if (!fetching_ && !reply_) AskForCentre(computes);
    return reply_.has_value();
  });
  return TakeReply(floats);
}

ServerClient::Snapshot ServerClient::FetchNow(size_t floats) {
  {
    std::unique_lock lock(mutex_);
    Until(lock, "the centre", [&] { return !fetching_; });
    reply_.reset();
  }
  return Fetch(floats);
}

std::optional<ServerClient::Snapshot> ServerClient::Prefetched(size_t floats) {
  std::lock_guard lock(mutex_);
  if (!reply_) return {};
  return TakeReply(floats);
}

std::optional<ServerClient::Snapshot> ServerClient::Answered(size_t floats) {
  std::unique_lock lock(mutex_);
  Until(lock, "the new centre", [&] { return reply_ || void_ || ended_; });
  if (!reply_) return {};
  return TakeReply(floats);
}

std::optional<ServerClient::Snapshot> ServerClient::News(size_t floats) {
  std::lock_guard lock(mutex_);
  if (!std::all_of(news_.begin(), news_.end(), [](const auto& one) { return one.has_value(); })) {
    return {};
  }
  Message whole = std::move(*news_[0]);
  for (size_t s = 1; s < news_.size(); ++s) {
    whole.body.insert(whole.body.end(), news_[s]->body.begin(), news_[s]->body.end());
  }
  news_.assign(servers_.size(), std::nullopt);
  return Unpack(std::move(whole), floats);
}

ServerClient::Snapshot ServerClient::TakeReply(size_t floats) {
  return Unpack(*std::exchange(reply_, {}), floats);
}

ServerClient::Snapshot ServerClient::Unpack(Message message, size_t floats) {
  if (message.body.size() != floats) {
    throw Error("the server's centre has {} values, but this worker's state has {}",
                message.body.size(), floats);
  }
  return {message.ints[0], std::max<int64_t>(1, message.ints[1]), std::move(message.body)};
}

void ServerClient::Put(Queue& queue, const Snapshot& centre, Slice into) {
  if (queue.device().host_visible()) return flat::PutNow(queue, centre.state, into);
  HostBuffer<float> staged = staging_.Take(queue.device(), into.size);
  std::ranges::copy(centre.state, staged.values().begin());
  flat::Put(queue, staged, into);
  queue.Sync();
  staging_.GiveBack(std::move(staged));
}

void ServerClient::Push(Queue& queue, Slice change, const PushHead& head,
                        std::span<const int64_t> leases, std::vector<float> memory) {
  const auto first = head.ints();
  Outgoing out{{.kind = kPush, .ints = {first.begin(), first.end()}, .body = std::move(memory)}};
  Message& message = out.message;
  message.ints.insert(message.ints.end(), leases.begin(), leases.end());
  message.body.resize(change.size);
  if (queue.device().host_visible()) {
    flat::Get(queue, change, message.body);
  } else {
    out.staged = staging_.Take(queue.device(), change.size);
    flat::Get(queue, change, out.staged);
  }
  out.ready = queue.Record();
  std::lock_guard lock(mutex_);
  Send(std::move(out));
}

bool ServerClient::holds_void() const {
  std::lock_guard lock(mutex_);
  return void_;
}

void ServerClient::Stop() { stopped_ = true; }

void ServerClient::Send(Outgoing out) {
  volume_.sent += BytesOf(out.message);
  sender_.Push(std::move(out));
}

Volume ServerClient::volume() const {
  std::lock_guard lock(mutex_);
  return volume_;
}

void ServerClient::Until(std::unique_lock<std::mutex>& lock, const char* what,
                         FunctionRef<bool()> done) {
  const Stopwatch watch;
  while (!error_ && !done()) {
    const int64_t before = arrivals_;
    const auto moved = [&] { return arrivals_ != before || error_; };
    if (!changed_.wait_until(lock, After(link_.timeout_s()), moved)) {
      throw PeerLost(
          "the server has been silent for {:g} s while this worker waits for {} "
          "(transport.timeout_s)",
          link_.timeout_s(), what);
    }
  }
  waited_s_ += watch.seconds();
  if (error_) std::rethrow_exception(error_);
}

// ---- the receiving thread

void ServerClient::Receive(std::stop_token stop, size_t server) {
  try {
    Message message;
    while (!stop.stop_requested()) {
      const Arrival arrival = servers_[server].link->Receive(message, After(kLook_s));
      if (arrival == Arrival::kNothing) continue;
      {
        std::lock_guard lock(mutex_);
        ++arrivals_;
        if (arrival == Arrival::kMessage) Sort(server, std::move(message));
        if (arrival == Arrival::kRenewed) Renew(server);
      }
      changed_.notify_all();
    }
  } catch (const std::exception&) {
    {
      std::lock_guard lock(mutex_);
      error_ = std::current_exception();
    }
    changed_.notify_all();
  }
}

// It knows of nothing asked, and of leases what its snapshot held. All servers begin anew when one
// does; the first may not know yet that partitions of this client's pushes are lost.
void ServerClient::Renew(size_t server) {
  if (server > 0) Send({{.kind = kAnew}});
  drain_ = asked_ = fetching_ = false;
  granted_.clear();
  reply_.reset();
  news_.assign(servers_.size(), std::nullopt);
  void_ = true;
}

void ServerClient::Sort(size_t server, Message message) {
  volume_.received += BytesOf(message);
  const auto numbers = [&](size_t least) {
    if (message.ints.size() >= least) return;
    throw Error("the server sent {} numbers instead of at least {} (message kind {})",
                message.ints.size(), least, message.kind);
  };
  switch (message.kind) {
    case kGrant:
      numbers(4);
      asked_ = false;
      TimeAnswer();
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
      asked_ = false;
      break;
    case kDrain:
      drain_ = true;
      asked_ = false;
      break;
    case kRefused:  // and whatever the client had asked for is forgotten
      granted_.clear();
      asked_ = false;
      void_ = true;
      break;
    case kDismissed:
      throw Error(
          "the server dismissed this client because its pushes were not finite; lower optimizer.lr "
          "or set trainer.clip");
    case kCentre:
      numbers(3);
      if (several()) return TakePartition(server, message.ints[2], message);
      fetching_ = false;
      reply_ = std::move(message);
      break;
    case kFetched:
      numbers(1);
      return TakePartition(server, message.ints[0], message);
    case kNews:
      numbers(2);
      news_[server] = std::move(message);
      break;
    case kWait:
      break;
    default:
      throw Error("unexpected message kind {} from the server", message.kind);
  }
}

// One that had to wait for others' work is slower than the link: believed only when it comes again.
void ServerClient::TimeAnswer() {
  const double seconds = Now() - asked_at_;
  answer_s_ = answer_s_ > 0 ? std::clamp(seconds, 0.9 * answer_s_, 1.5 * answer_s_) : seconds;
}

// Where the centre lies on several servers: a fetch is complete when all have answered it.
void ServerClient::TakePartition(size_t server, int64_t fetch, Message& message) {
  if (!fetching_ || fetch != fetches_) return;  // of a fetch that was given up
  const Range partition = servers_[server].partition;
  if (message.body.size() != partition.size) {
    throw Error("server {} sent {} values of the centre, but its partition has {}", server,
                message.body.size(), partition.size);
  }
  partitions_[server] = std::move(message);
  const auto missing = [](const Message& m) { return m.kind < 0; };
  if (std::any_of(partitions_.begin(), partitions_.end(), missing)) return;
  Message whole = std::move(partitions_[0]);
  for (size_t s = 1; s < partitions_.size(); ++s) {
    whole.body.insert(whole.body.end(), partitions_[s].body.begin(), partitions_[s].body.end());
  }
  fetching_ = false;
  reply_ = std::move(whole);
}

// ---- the sending thread

// The other servers have their partitions of a push when the first hears of it, or soon after.
CommWork ServerClient::Dispatch(Outgoing& out) {
  out.ready.Wait();
  const Event began = Event::Fired(Now());
  Message& message = out.message;
  if (out.staged.size() > 0) {
    std::ranges::copy(out.staged.values(), message.body.begin());
    staging_.GiveBack(std::move(out.staged));
  }
  for (size_t s = 1; s < servers_.size(); ++s) {
    const auto& [link, partition] = servers_[s];
    if (message.kind == kFetch) link->Send(message);
    if (message.kind != kPush) continue;
    const auto begin = message.body.begin() + std::ptrdiff_t(partition.begin);
    link->Send({.kind = kPartition,
                .ints = {message.ints[PushHead::kInts]},
                .body = {begin, begin + std::ptrdiff_t(partition.size)}});
  }
  if (several() && message.kind == kPush) message.body.resize(servers_[0].partition.size);
  link_.Send(std::move(message));
  return {began, Event::Fired(Now())};
}

// ----

int64_t TakeCentre(ServerClient& client, Replica& replica) {
  const ServerClient::Snapshot centre = client.Fetch(replica.state.size);
  client.Put(replica.queue, centre, replica.state);
  return centre.version;
}

}  // namespace trireme
