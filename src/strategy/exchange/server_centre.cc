#include "strategy/exchange/server_centre.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "flat/arithmetic.h"
#include "strategy/server/protocol.h"

namespace trireme {

ServerCentre::ServerCentre(ServerLine& line, const LeaseClient& leases)
    : line_(line), leases_(leases), news_(line.servers().size()) {}

// ---- the worker's thread

void ServerCentre::Prefetch() {
  const auto lock = line_.Lock();
  if (!fetching_ && !reply_) AskForCentre();
}

void ServerCentre::AskForCentre(bool computes) {
  fetching_ = true;
  partitions_.assign(line_.servers().size(), {.kind = -1});
  line_.Send({{.kind = kFetch, .ints = {++fetches_, computes}}});
}

Centre::Snapshot ServerCentre::Fetch(size_t floats, bool computes) {
  auto lock = line_.Lock();
  line_.Until(lock, "the centre", [&] {
    // Also again, when the server is another one.
    if (!fetching_ && !reply_) AskForCentre(computes);
    return reply_.has_value();
  });
  return TakeReply(floats);
}

Centre::Snapshot ServerCentre::FetchNow(size_t floats) {
  {
    auto lock = line_.Lock();
    line_.Until(lock, "the centre", [&] { return !fetching_; });
    reply_.reset();
  }
  return Fetch(floats);
}

std::optional<Centre::Snapshot> ServerCentre::Prefetched(size_t floats) {
  const auto lock = line_.Lock();
  if (!reply_) return {};
  return TakeReply(floats);
}

std::optional<Centre::Snapshot> ServerCentre::Answered(size_t floats) {
  auto lock = line_.Lock();
  line_.Until(lock, "the new centre", [&] { return reply_ || leases_.over(); });
  if (!reply_) return {};
  return TakeReply(floats);
}

std::optional<Centre::Snapshot> ServerCentre::News(size_t floats) {
  const auto lock = line_.Lock();
  if (!std::all_of(news_.begin(), news_.end(), [](const auto& one) { return one.has_value(); })) {
    return {};
  }
  Message whole = std::move(*news_[0]);
  for (size_t s = 1; s < news_.size(); ++s) {
    whole.body.insert(whole.body.end(), news_[s]->body.begin(), news_[s]->body.end());
  }
  news_.assign(news_.size(), std::nullopt);
  return Unpack(std::move(whole), floats);
}

Centre::Snapshot ServerCentre::TakeReply(size_t floats) {
  return Unpack(*std::exchange(reply_, {}), floats);
}

Centre::Snapshot ServerCentre::Unpack(Message message, size_t floats) {
  if (message.body.size() != floats) {
    throw Error("the server's centre has {} values, but this worker's state has {}",
                message.body.size(), floats);
  }
  return {message.ints[0], std::max<int64_t>(1, message.ints[1]), std::move(message.body)};
}

void ServerCentre::Push(Queue& queue, Slice change, const PushHead& head,
                        std::span<const int64_t> leases, std::vector<float> memory) {
  const auto first = head.ints();
  ServerLine::Outgoing out{
      {.kind = kPush, .ints = {first.begin(), first.end()}, .body = std::move(memory)}};
  Message& message = out.message;
  message.ints.insert(message.ints.end(), leases.begin(), leases.end());
  message.body.resize(change.size);
  if (queue.device().host_visible()) {
    flat::Get(queue, change, message.body);
  } else {
    out.staged = staging_.Take(queue.device(), change.size);
    out.pool = &staging_;
    flat::Get(queue, change, out.staged);
  }
  out.ready = queue.Record();
  const auto lock = line_.Lock();
  line_.Send(std::move(out));
}

// ---- the receiving threads

bool ServerCentre::Hear(size_t server, Message& message) {
  switch (message.kind) {
    case kCentre:
      RequireNumbers(message, 3);
      if (line_.several()) {
        TakePartition(server, message.ints[2], message);
      } else {
        fetching_ = false;
        reply_ = std::move(message);
      }
      return true;
    case kFetched:
      RequireNumbers(message, 1);
      TakePartition(server, message.ints[0], message);
      return true;
    case kNews:
      RequireNumbers(message, 2);
      news_[server] = std::move(message);
      return true;
    default:
      return false;
  }
}

void ServerCentre::Renewed(size_t) {
  fetching_ = false;
  reply_.reset();
  news_.assign(news_.size(), std::nullopt);
}

// Where the centre lies on several servers: a fetch is complete when all have answered it.
void ServerCentre::TakePartition(size_t server, int64_t fetch, Message& message) {
  if (!fetching_ || fetch != fetches_) return;  // of a fetch that was given up
  const Range partition = line_.servers()[server].partition;
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

}  // namespace trireme
