#include "strategy/server/partition_server.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "flat/cpu/loops.h"
#include "strategy/server/partition.h"
#include "strategy/server/protocol.h"

namespace trireme {
namespace {

constexpr size_t kMostOpenWords = 256;  // of a client: one that means well has a few
constexpr double kLookAtLinks_s = 0.02;

}  // namespace

PartitionServer::PartitionServer(Setup setup)
    : setup_(std::move(setup)),
      team_(setup_.threads),
      device_(&team_),
      queue_(device_.NewQueue()),
      partition_(device_, setup_.floats),
      rule_(setup_.rule(device_)) {
  for (Link* link : setup_.clients) peers_.push_back({.link = link});
}

void PartitionServer::Load(const StateReader& reader) { rule_->Load(*queue_, reader); }

void PartitionServer::Save(StateWriter& writer) const { rule_->Save(*queue_, writer); }

void PartitionServer::Run(ServerKeeper* keeper) {
  const struct Listening {  // no link wakes a server that is gone
    PartitionServer& server;
    explicit Listening(PartitionServer& s) : server(s) { Wake(&s.wake_); }
    ~Listening() { Wake(nullptr); }
    void Wake(WakeEvent* wake) {
      server.setup_.first->SetWakeEvent(wake);
      for (Peer& peer : server.peers_) peer.link->SetWakeEvent(wake);
    }
  } listening(*this);
  alone_since_ = After(0);
  while (!over_) {
    // Clients are heard when there is something to answer with.
    bool heard = HearFirst();
    if (loaded_ && HearClients()) heard = true;
    Broadcast();
    if (keeper) PassOn(keeper->signal());
    if (!heard) wake_.Wait(After(kLookAtLinks_s));
  }
}

// ---- the first server

bool PartitionServer::HearFirst() {
  bool heard = false;
  Message message;
  for (;;) {
    const Arrival arrival = setup_.first->Receive(message, After(0));
    if (arrival == Arrival::kNothing) break;
    heard = true;
    if (arrival == Arrival::kMessage) {
      alone_ = false;
      Obey(message);
    } else {
      if (arrival == Arrival::kRenewed) loaded_ = false;
      alone_ = arrival == Arrival::kGone;
      alone_since_ = After(0);
    }
  }
  const double timeout_s = setup_.first->timeout_s();
  if ((alone_ || !loaded_) && After(-timeout_s) > alone_since_) {
    throw PeerLost("server 0 has been silent for {:g} s (transport.timeout_s)", timeout_s);
  }
  return heard;
}

void PartitionServer::Obey(Message& message) {
  const auto numbers = [&](size_t least) {
    if (message.ints.size() >= least && (loaded_ || message.kind == kLoad)) return;
    throw Error("server 0 sent too few integers ({}), or too early (message kind {})",
                message.ints.size(), message.kind);
  };
  switch (message.kind) {
    case kLoad:
      return Begin(message);
    case kApply:
      numbers(5);
      return Apply(message);
    case kForget:
      numbers(2);
      return Decided({message.ints[0], int(message.ints[1])});
    case kSave: {
      numbers(0);
      StateImage memory;
      Save(memory);
      return setup_.first->Send(PackPartition(kSaved, centre(), &memory));
    }
    case kOver:
      over_ = true;
      return;
    default:
      throw Error("unexpected message kind {} from server 0", message.kind);
  }
}

void PartitionServer::Begin(Message& message) {
  if (message.ints.empty()) throw Error("server 0 sent a partition without a number of its life");
  const int64_t life = message.ints[0];
  message.ints.erase(message.ints.begin());
  rule_ = setup_.rule(device_);
  StateImage memory;
  Save(memory);  // names
  if (UnpackPartition(message, partition_.slice().host(), memory)) Load(memory);
  loaded_ = true;
  changed_ = told_ = false;
  ForgetOthers(life);
}

// Clients may have heard of the first's new life before this server did. What they have sent for it
// stays, and it is told again: the first time may have been for the life before.
void PartitionServer::ForgetOthers(int64_t life) {
  std::erase_if(held_, [&](const auto& push) { return LifeOf(push.first.first) != life; });
  for (const auto& [push, held] : held_) Tell(push, held.good);
  for (int c = 0; c < int(peers_.size()); ++c) {
    std::erase_if(peers_[size_t(c)].open,
                  [&](const Word& word) { return !word.fetch && LifeOf(word.number) != life; });
    Answer(c);
  }
}

void PartitionServer::Apply(const Message& message) {
  const Key push{message.ints[0], int(message.ints[1])};
  const auto found = held_.find(push);
  if (found == held_.end() || !found->second.good) {
    throw Error("server 0 applies a push (lease {}) that this server does not have", push.first);
  }
  std::vector<float>& body = found->second.body;
  const ServerRule::Part part{.body = {body.data(), body.size(), &device_},
                              .samples = message.ints[4]};
  rule_->Apply(*queue_, {&part, 1}, message.ints[2], float(RealOf(message.ints[3])), partition_);
  queue_->Sync();
  changed_ = true;
  Decided(push);
  if (setup_.applied) setup_.applied();
}

void PartitionServer::Decided(const Key& push) {
  if (!held_.erase(push)) return;
  std::erase_if(peers_[size_t(push.second)].open,
                [&](const Word& word) { return !word.fetch && word.number == push.first; });
  Answer(push.second);
}

// ---- clients

bool PartitionServer::HearClients() {
  bool heard = false;
  Message message;
  for (int c = 0; c < int(peers_.size()); ++c) {
    Peer& peer = peers_[size_t(c)];
    for (;;) {
      const Arrival arrival = peer.link->Receive(message, After(0));
      if (arrival == Arrival::kNothing) break;
      heard = true;
      if (arrival == Arrival::kMessage) Hear(c, message);
      // Another life: it waits for nothing. What the first sent is the first server's to decide.
      if (arrival == Arrival::kRenewed) peer.open.clear();
    }
  }
  return heard;
}

void PartitionServer::Hear(int client, Message& message) {
  Peer& peer = peers_[size_t(client)];
  if (message.kind == kBye) return;
  const bool fetch = message.kind == kFetch, partition = message.kind == kPartition;
  const bool fits = message.ints.size() == (fetch ? 2u : 1u) && (fetch || partition) &&
                    peer.open.size() < kMostOpenWords;
  if (!fits) {
    if (!std::exchange(peer.named, true) && setup_.log) {
      setup_.log->Warn("server", "client {} sent an unexpected message (kind {})", client + 1,
                       message.kind);
    }
    // A push that is known must not wait for ever.
    if (partition && !message.ints.empty()) {
      const Key push{message.ints[0], client};
      held_.try_emplace(push);
      Tell(push, false);
    }
    return;
  }
  if (partition) return Keep(client, message);
  peer.open.push_back({.fetch = true, .number = message.ints[0]});
  Answer(client);
}

void PartitionServer::Keep(int client, Message& message) {
  const int64_t lease = message.ints[0];
  const auto [place, is_new] = held_.try_emplace({lease, client});
  const bool good = is_new && message.body.size() == setup_.floats &&
                    std::isfinite(loops::Largest(message.body.data(), message.body.size()));
  if (good) {
    place->second = {true, std::move(message.body)};
    peers_[size_t(client)].open.push_back({.number = lease});
  }
  Tell(place->first, good);
}

void PartitionServer::Tell(const Key& push, bool good) {
  setup_.first->Send({.kind = kHas, .ints = {push.first, push.second, good}});
}

void PartitionServer::Answer(int client) {
  Peer& peer = peers_[size_t(client)];
  while (!peer.open.empty() && peer.open.front().fetch) {
    Message answer{.kind = kFetched, .ints = {peer.open.front().number}};
    answer.body.assign(centre().begin(), centre().end());
    peer.link->Send(std::move(answer));
    peer.open.pop_front();
  }
}

// Once for all that was applied; whoever is away gets the newest when it is back.
void PartitionServer::Broadcast() {
  if (!setup_.broadcasts || !std::exchange(changed_, false)) return;
  const auto news = std::make_shared<const Message>(
      Message{.kind = kNews, .ints = {0, 0}, .body = {centre().begin(), centre().end()}});
  for (const Peer& peer : peers_) peer.link->OfferShared(news);
}

// This server alone cannot end the run: it serves until the first says that it is over.
void PartitionServer::PassOn(int signal) {
  if (signal == 0 || !loaded_ || std::exchange(told_, true)) return;
  setup_.first->Send({.kind = kStop, .ints = {signal}});
}

}  // namespace trireme
