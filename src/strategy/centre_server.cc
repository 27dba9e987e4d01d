#include "strategy/centre_server.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "flat/arithmetic.h"
#include "strategy/protocol.h"

namespace trireme {
namespace {

constexpr size_t kMostStaleness = 1000;
// Pushes in a row that are not finite: leasing their positions again would never end.
constexpr int kDiverged = 50;

// Larger than any id of an earlier life of the run: leases are handed out more slowly than one per
// microsecond.
int64_t NewIds() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

CentreServer::CentreServer(Setup setup, std::span<const float> centre)
    : setup_(std::move(setup)),
      queue_(device_.NewQueue()),
      centre_(device_, centre.size()),
      leases_(setup_.samples, setup_.positions, setup_.lease, NewIds()) {
  std::copy(centre.begin(), centre.end(), centre_.slice().host().begin());
  for (Link* link : setup_.clients) peers_.push_back({.link = link});
}

void CentreServer::Load(const StateReader& reader) {
  version_ = reader.Int("centre.version");
  staleness_ = reader.Ints("centre.staleness");
  leases_.Load(reader.Ints("centre.leases"), NewIds());
  if (version_ < 0 || staleness_.size() > kMostStaleness + 1) {
    throw Error("the saved centre has version {} and {} staleness counts", version_,
                staleness_.size());
  }
  // The one that saved may have known of fewer ends than there were.
  const int64_t told = reader.Int("centre.epochs_told");
  if (told < 0 || told > EpochsEnded()) {
    throw Error("{} epochs were told of, but {} have ended", told, EpochsEnded());
  }
  for (Peer& peer : peers_) peer.told = told;
}

void CentreServer::Run() {
  const struct Listening {  // no link rings the bell of a server that is gone
    std::vector<Peer>& peers;
    Listening(std::vector<Peer>& p, Bell& bell) : peers(p) {
      for (Peer& peer : peers) peer.link->RingFor(&bell);
    }
    ~Listening() {
      for (Peer& peer : peers) peer.link->RingFor(nullptr);
    }
  } listening(peers_, bell_);

  const double timeout_s = peers_.front().link->timeout_s();
  const double look_s = std::min(0.02, timeout_s / 4);
  deserted_ = After(timeout_s);
  Deadline encourage = After(timeout_s / 4);
  Message message;
  while (!Over()) {
    bool idle = true;
    for (int c = 0; c < int(peers_.size()); ++c) {
      for (;;) {
        const Arrival arrival = peers_[c].link->Receive(message, After(0));
        if (arrival == Arrival::kNothing) break;
        Hear(c, arrival, message);
        idle = false;
      }
    }
    if (leases_.drained() && !leases_.finished() && !stopping_) leases_.NextEpoch();
    for (int c = 0; c < int(peers_.size()); ++c) Answer(c);
    if (After(0) >= encourage) {  // a slow peer is no reason to give the server up
      encourage = After(timeout_s / 4);
      for (Peer& peer : peers_) {
        if (peer.asks) peer.link->Offer({.kind = kWait});
      }
    }
    if (idle) bell_.Wait(After(look_s));
  }
}

// All have said goodbye, or nobody is here and those who may return have not done so in time.
bool CentreServer::Over() {
  const auto all = [&](auto is) { return std::all_of(peers_.begin(), peers_.end(), is); };
  if (all([](const Peer& p) { return p.presence == Presence::kBye; })) return true;
  if (!all([](const Peer& p) { return p.presence != Presence::kHere; })) {
    deserted_ = After(peers_.front().link->timeout_s());
    return false;
  }
  if (After(0) < deserted_) return false;
  if (leases_.finished() || stopping_) return true;
  throw PeerLost("the server has no client left, and {} of {} positions are done",
                 leases_.closed_positions(), setup_.positions);
}

void CentreServer::Hear(int client, Arrival arrival, Message& message) {
  Peer& peer = peers_[client];
  switch (arrival) {
    case Arrival::kNothing:
      break;
    case Arrival::kMessage:
      if (peer.presence != Presence::kBye) {
        peer.presence = Presence::kHere;
        Handle(client, message);
      }
      break;
    case Arrival::kBack:
      if (peer.presence == Presence::kGone) peer.presence = Presence::kHere;
      break;
    case Arrival::kGone:  // its leases go to others
      leases_.Drop(client);
      if (peer.presence == Presence::kHere) peer.presence = Presence::kGone;
      break;
    case Arrival::kRenewed:  // another life of the client: it knows nothing of the first one's work
      leases_.Drop(client);
      peer = {.link = peer.link, .told = EpochsEnded()};
      break;
  }
}

void CentreServer::Handle(int client, Message& message) {
  Peer& peer = peers_[client];
  switch (message.kind) {
    case kAsk:
      peer.asks = true;
      peer.holds = !message.ints.empty() && message.ints[0] != 0;
      peer.wants = message.ints.size() < 2 ? 1 : message.ints[1];
      break;
    case kFetch:
      SendCentre(*peer.link, kCentre, {version_});
      break;
    case kSnapshot: {
      const std::vector<int64_t> leases = leases_.Save();
      std::vector<int64_t> ints{version_, int64_t(leases.size())};
      ints.insert(ints.end(), leases.begin(), leases.end());
      ints.insert(ints.end(), staleness_.begin(), staleness_.end());
      SendCentre(*peer.link, kImage, std::move(ints));
      break;
    }
    case kPush:
      Push(client, message);
      break;
    case kStop:
      stopping_ = true;
      break;
    case kLeave:
      leases_.Drop(client);
      peer.asks = peer.left = stopping_ = true;
      peer.holds = false;
      break;
    case kBye:
      leases_.Drop(client);
      peer.presence = Presence::kBye;
      break;
    default:
      Refuse(client);
  }
}

void CentreServer::Push(int client, Message& message) {
  if (!Belongs(client, message)) return Refuse(client);
  if (!std::all_of(message.body.begin(), message.body.end(),
                   [](float value) { return std::isfinite(value); })) {
    if (++diverged_ == kDiverged) {
      throw Error(
          "the last {} pushes of the workers were not finite (lower optimizer.lr or set "
          "trainer.clip)",
          kDiverged);
    }
    return Refuse(client);
  }
  diverged_ = 0;
  // Leases and centre change in one go: no snapshot sees one without the other.
  for (size_t i = 1; i < message.ints.size(); ++i) {
    const Lease& lease = leases_.Close(message.ints[i]);
    if (seen_) seen_(lease);
  }
  setup_.merge(*queue_, {message.body.data(), message.body.size(), &device_}, centre_);
  const size_t staleness = std::min<size_t>(size_t(version_ - message.ints[0]), kMostStaleness);
  if (staleness_.size() <= staleness) staleness_.resize(staleness + 1);
  ++staleness_[staleness];
  ++version_;
  spare_ = std::move(message.body);
}

// The version, then leases that are the client's, each once; a value for each of the centre.
bool CentreServer::Belongs(int client, const Message& push) const {
  if (push.ints.size() < 2 || push.ints[0] < 0 || push.ints[0] > version_) return false;
  if (push.body.size() != centre_.slice().size) return false;
  std::vector<int64_t> ids(push.ints.begin() + 1, push.ints.end());
  std::sort(ids.begin(), ids.end());
  if (std::adjacent_find(ids.begin(), ids.end()) != ids.end()) return false;
  return std::all_of(ids.begin(), ids.end(), [&](int64_t id) { return leases_.Owns(id, client); });
}

void CentreServer::Refuse(int client) {
  ++refused_;
  leases_.Drop(client);
  peers_[client].link->Send({.kind = kRefused});
}

void CentreServer::Answer(int client) {
  Peer& peer = peers_[client];
  if (!peer.asks || peer.presence != Presence::kHere) return;
  Message answer;
  if (!peer.left && peer.told < EpochsEnded()) {
    // Nothing of the next epoch before it knows of this one's end; also those that it slept
    // through. One that asked ahead and may hold something asks again without.
    if (peer.holds) {
      answer = {.kind = kDrain};
    } else {
      answer = {.kind = kEpochEnd, .ints = {peer.told++}};
    }
  } else if (answer = Grant(client); !answer.ints.empty()) {
  } else if (peer.holds) {
    answer = {.kind = kDrain};
  } else if (leases_.finished() || (stopping_ && leases_.open() == 0)) {
    answer = {.kind = kEnd};
  } else {
    return;  // others still work; what they drop is for this one
  }
  peer.asks = false;
  peer.link->Send(std::move(answer));
}

// As many as the client can work off soon, but no more than half its share of what is left: an
// epoch shall not end with all waiting for one (guided self-scheduling; Polychronopoulos, Kuck
// 1987).
Message CentreServer::Grant(int client) {
  Message grant{.kind = kGrant};
  if (stopping_) return grant;
  const int64_t share = leases_.untaken() / (2 * setup_.lease * int64_t(peers_.size()));
  const int64_t count =
      std::clamp<int64_t>(share, 1, std::clamp<int64_t>(peers_[client].wants, 1, 64));
  for (int64_t i = 0; i < count; ++i) {
    const auto lease = leases_.Take(client);
    if (!lease) break;
    if (grant.ints.empty()) grant.ints = {lease->epoch};
    grant.ints.insert(grant.ints.end(), {lease->id, lease->begin, lease->end});
  }
  return grant;
}

void CentreServer::SendCentre(Link& link, int word, std::vector<int64_t> ints) {
  const std::span<const float> centre = this->centre();
  spare_.assign(centre.begin(), centre.end());
  link.Send({.kind = word, .ints = std::move(ints), .body = std::move(spare_)});
  spare_ = {};
}

int64_t CentreServer::EpochsEnded() const {
  return leases_.epoch() + (leases_.drained() && leases_.epoch_complete() ? 1 : 0);
}

}  // namespace trireme
