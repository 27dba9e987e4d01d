#include "strategy/exchange/server_line.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/start_thread.h"
#include "strategy/server/protocol.h"

namespace trireme {
namespace {

constexpr double kLook_s = 0.05;  // the receiver looks whether it shall end

}  // namespace

ServerLine::ServerLine(std::vector<Holder> servers)
    : servers_(std::move(servers)),
      link_(*servers_[0].link),
      sender_([this](Outgoing& out) { return Dispatch(out); }, [](std::string_view) {}) {
}  // the link's other end has a deadline

void ServerLine::Listen(std::vector<Listener*> listeners) {
  listeners_ = std::move(listeners);
  for (size_t s = 0; s < servers_.size(); ++s) {
    receivers_.push_back(StartThread("the thread that listens to a server",
                                     [this, s](const std::stop_token& stop) { Receive(stop, s); }));
  }
}

void ServerLine::Close() noexcept {
  if (receivers_.empty()) return;
  for (std::jthread& receiver : receivers_) receiver.request_stop();
  try {
    sender_.Drain();
    for (const Holder& server : servers_) server.link->Send({.kind = kBye});
  } catch (const std::exception&) {  // the run ends with an error that is known already
  }
  receivers_.clear();
}

void ServerLine::Send(Outgoing out) {
  volume_.sent += BytesOf(out.message);
  sender_.Push(std::move(out));
}

void ServerLine::Notify() {
  ++arrivals_;
  changed_.notify_all();
}

Volume ServerLine::volume() const {
  std::lock_guard lock(mutex_);
  return volume_;
}

void ServerLine::Until(std::unique_lock<std::mutex>& lock, const char* what,
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

// ---- the receiving threads

void ServerLine::Receive(const std::stop_token& stop, size_t server) {
  try {
    Message message;
    while (!stop.stop_requested()) {
      const Arrival arrival = servers_[server].link->Receive(message, After(kLook_s));
      if (arrival == Arrival::kNothing) continue;
      {
        std::lock_guard lock(mutex_);
        ++arrivals_;
        if (arrival == Arrival::kMessage) Sort(server, std::move(message));
        if (arrival == Arrival::kRenewed) {
          for (Listener* listener : listeners_) listener->Renewed(server);
        }
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

void ServerLine::Sort(size_t server, Message message) {
  volume_.received += BytesOf(message);
  switch (message.kind) {
    case kDismissed:
      throw Error(
          "the server dismissed this client because its pushes were not finite; lower optimizer.lr "
          "or set trainer.clip");
    default:
      break;
  }
  const bool heard = std::ranges::any_of(
      listeners_, [&](Listener* listener) { return listener->Hear(server, message); });
  if (!heard) throw Error("unexpected message kind {} from the server", message.kind);
}

void RequireNumbers(const Message& message, size_t least) {
  if (message.ints.size() >= least) return;
  throw Error("the server sent {} numbers instead of at least {} (message kind {})",
              message.ints.size(), least, message.kind);
}

// ---- the sending thread

// The other servers have their partitions of a push when the first hears of it, or soon after.
CommWork ServerLine::Dispatch(Outgoing& out) {
  out.ready.Wait();
  const Event began = Event::Fired(Now());
  Message& message = out.message;
  if (out.staged.size() > 0) {
    std::ranges::copy(out.staged.values(), message.body.begin());
    out.pool->GiveBack(std::move(out.staged));
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

}  // namespace trireme
