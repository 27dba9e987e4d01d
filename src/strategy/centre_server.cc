#include "strategy/centre_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "strategy/protocol.h"

namespace trireme {
namespace {

// Pushes in a row that are not finite: leasing their positions again would never end.
constexpr int kDiverged = 50;
constexpr int64_t kNamedRefusals = 1;  // of a client; the rest is only counted
constexpr size_t kMostClients = 4096;
constexpr double kLinger_s = 2;  // at the end, for clients that are away: they hear that it is over

// Larger than any id of an earlier life of the run: leases are handed out more slowly than one per
// microsecond.
int64_t NewIds() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// A clock's leases are the shards of its step.
LeaseTable::Cut CutAtShards(const Plan& plan) {
  return [plan](int64_t begin) {
    const int64_t first = begin - begin % plan.batch;
    const int64_t count = std::min(plan.batch, plan.samples - first);
    for (int64_t s = 1; s < plan.shards; ++s) {
      const int64_t end = first + count * s / plan.shards;
      if (end > begin) return end;
    }
    return first + count;
  };
}

}  // namespace

CentreServer::CentreServer(Setup setup, std::span<const float> centre,
                           std::unique_ptr<PortionBoard> board)
    : setup_(std::move(setup)),
      centre_(setup_.rule,
              {setup_.plan.samples, setup_.positions, setup_.lease, NewIds(),
               setup_.when == When::kClock ? CutAtShards(setup_.plan) : LeaseTable::Cut()},
              centre, std::move(board)),
      leases_(centre_.leases()),
      board_(centre_.board()),
      gate_(setup_.staleness) {
  for (Link* link : setup_.clients) Meet(link, fmt::format("client {}", peers_.size() + 1));
}

void CentreServer::Meet(Link* link, std::string name) {
  // Who comes over a network is here when it is heard, and nobody waits for it before.
  const Presence presence = setup_.reception ? Presence::kGone : Presence::kHere;
  peers_.push_back({.link = link, .presence = presence});
  centre_.AddClient(std::move(name));
}

void CentreServer::Load(const StateReader& reader) { centre_.Load(reader, NewIds()); }

Server::Progress CentreServer::progress() const {
  Progress progress = centre_.progress();
  progress.bytes_sent = bytes_sent_;
  progress.bytes_received = bytes_received_;
  return progress;
}

std::vector<ClientNumbers> CentreServer::clients() const {
  std::vector<ClientNumbers> all(centre_.clients().begin(), centre_.clients().end());
  for (size_t c = 0; c < all.size(); ++c) all[c].here = peers_[c].presence == Presence::kHere;
  return all;
}

int64_t CentreServer::refused() const {
  int64_t sum = 0;
  for (const ClientNumbers& client : centre_.clients()) sum += client.refused;
  return sum;
}

Staleness CentreServer::staleness() const {
  Staleness all;
  for (const ClientNumbers& client : centre_.clients()) all.Add(client.staleness);
  return all;
}

// ---- the loop

void CentreServer::Run(ServerKeeper* keeper) {
  const struct Listening {  // no link rings the bell of a server that is gone
    CentreServer& server;
    explicit Listening(CentreServer& s) : server(s) {
      for (Peer& peer : s.peers_) peer.link->RingFor(&s.bell_);
      if (s.setup_.reception) s.setup_.reception->RingFor(&s.bell_);
      if (s.board_) s.board_->RingFor(&s.bell_);
    }
    ~Listening() {
      for (Peer& peer : server.peers_) peer.link->RingFor(nullptr);
      if (server.setup_.reception) server.setup_.reception->RingFor(nullptr);
      if (server.board_) server.board_->RingFor(nullptr);
    }
  } listening(*this);
  if (board_) board_->SendOut();

  const double encourage_s = std::min(5.0, timeout_s() / 4);
  const double look_s = std::min(0.02, encourage_s);
  deserted_since_ = After(0);
  Deadline encourage = After(encourage_s);
  while (!Over()) {
    if (keeper && keeper->Stop()) stopping_ = true;
    const bool idle = !HearAll();
    ApplyRound();  // those who left are not waited for
    ApplyInTime();
    GiveWeights();
    if (leases_.drained() && !leases_.finished() && !stopping_) EndEpoch(keeper);
    for (int c = 0; c < int(peers_.size()); ++c) Answer(c);
    Broadcast();
    if (keeper) keeper->Look(*this);
    if (After(0) >= encourage) {  // a slow peer is no reason to give the server up
      encourage = After(encourage_s);
      for (Peer& peer : peers_) {
        if (peer.asks || peer.waits || !peer.inbox.empty() || setup_.stale == Stale::kWait) {
          peer.link->Offer({.kind = kWait});
        }
      }
    }
    if (idle) bell_.Wait(After(look_s));
  }
}

bool CentreServer::HearAll() {
  bool heard = false;
  // After a pause of its own (a stopped process, a long wait for the disk) it first listens.
  constexpr double kPause_s = 1, kListen_s = 2;
  if (After(-kPause_s) > looked_at_) judges_from_ = After(kListen_s);
  looked_at_ = After(0);
  while (setup_.reception && peers_.size() < kMostClients) {
    Reception::Guest guest = setup_.reception->Next();
    if (!guest.link) break;
    if (setup_.log) setup_.log->Info("server", "{} has joined", guest.name);
    guest.link->RingFor(&bell_);
    Meet(guest.link, std::move(guest.name));
    heard = true;
  }
  Message message;
  for (int c = 0; c < int(peers_.size()); ++c) {
    for (;;) {
      const Arrival arrival = peers_[c].link->Receive(message, After(0));
      if (arrival == Arrival::kNothing) break;
      Hear(c, arrival, message);
      heard = true;
    }
    if (looked_at_ >= judges_from_) Watch(c);
  }
  if (!board_) return heard;
  heard |= board_->Hear([&](int64_t id, int client) { return leases_.Owns(id, client); });
  for (int c = 0; c < int(peers_.size()); ++c) ReadInbox(c);
  board_->Sweep([&](int64_t id) { return leases_.Open(id); });
  return heard;
}

void CentreServer::EndEpoch(ServerKeeper* keeper) {
  if (keeper) keeper->EpochEnded(*this);
  centre_.NextEpoch();
}

int64_t CentreServer::Here() const {
  return std::count_if(peers_.begin(), peers_.end(),
                       [](const Peer& p) { return p.presence == Presence::kHere; });
}

double CentreServer::timeout_s() const {
  return setup_.clients.empty() ? setup_.reception->timeout_s() : setup_.clients[0]->timeout_s();
}

// All that was begun is in, and nobody is here: they have said goodbye, or those who may return
// have not done so in time.
bool CentreServer::Over() {
  const bool done = leases_.finished() || stopping_;
  const auto any = [&](Presence presence) {
    return std::any_of(peers_.begin(), peers_.end(),
                       [&](const Peer& p) { return p.presence == presence; });
  };
  const bool away = any(Presence::kGone), dismissed = any(Presence::kDismissed);
  if (any(Presence::kHere)) {
    deserted_since_ = After(0);
    return false;
  }
  // Who said goodbye does not come back; others may, where there is a reception.
  if (!away && (done || (!setup_.reception && !dismissed))) return true;
  if (dismissed && !away) {
    throw Error(
        "the last {} pushes of every worker were not finite (lower optimizer.lr or set "
        "trainer.clip)",
        kDiverged);
  }
  const double patience_s = done ? std::min(timeout_s(), kLinger_s) : timeout_s();
  if (After(-patience_s) < deserted_since_) return false;
  if (done) return true;
  throw PeerLost("the server has no client left, and {} of {} positions are done",
                 leases_.closed_positions(), setup_.positions);
}

// ---- clients

void CentreServer::TakeBack(int client) {
  leases_.Drop(client);
  int64_t& from = peers_[client].from;
  if (from >= 0) gate_.End(std::exchange(from, -1));
}

// What it has asked for is answered when it is back: in the same life it does not ask again.
void CentreServer::Lose(int client) {
  TakeBack(client);
  Presence& presence = peers_[client].presence;
  if (presence == Presence::kHere) presence = Presence::kGone;
}

void CentreServer::Forget(int client) {
  TakeBack(client);
  peers_[client].asks = peers_[client].holds = false;
  std::erase(want_weights_, client);
}

void CentreServer::Hear(int client, Arrival arrival, Message& message) {
  Peer& peer = peers_[client];
  switch (arrival) {
    case Arrival::kNothing:
      break;
    case Arrival::kMessage:
      bytes_received_ += BytesOf(message);
      if (peer.presence != Presence::kHere && peer.presence != Presence::kGone) break;
      peer.presence = Presence::kHere;
      if (board_ && message.kind != kAsk && message.kind != kAnew) {
        peer.inbox.push_back(std::move(message));
        ReadInbox(client);
      } else {
        Handle(client, message);
      }
      break;
    case Arrival::kBack:
      if (peer.presence == Presence::kGone) peer.presence = Presence::kHere;
      break;
    case Arrival::kGone:
      Lose(client);
      break;
    case Arrival::kRenewed:  // another life of the client: it knows nothing of the first one's work
      Forget(client);
      peer.presence = Presence::kHere;
      peer.waits = false;
      peer.told = -1;
      peer.wants = 1;
      peer.inbox.clear();
      if (setup_.log) setup_.log->Info("server", "{} is there again", NameOf(client));
      break;
  }
}

// One that is silent for longer than it ever was is not waited for.
void CentreServer::Watch(int client) {
  Peer& peer = peers_[client];
  if (peer.presence != Presence::kHere) return;
  const double silent_s = peer.link->overdue_s();
  if (silent_s <= 0) return;
  const int64_t open = leases_.open();
  Lose(client);
  ++centre_.client(client).removed;
  if (setup_.log) {
    setup_.log->Warn("server", "{} is silent for {:.1f} s and removed; {} of its leases are free",
                     NameOf(client), silent_s, open - leases_.open());
  }
}

// A client's words count in its order: what follows a push, a fetch above all, waits with it.
void CentreServer::ReadInbox(int client) {
  std::deque<Message>& inbox = peers_[client].inbox;
  while (!inbox.empty() && !Waits(inbox.front(), client)) {
    Message message = std::move(inbox.front());
    inbox.pop_front();
    Handle(client, message);
  }
}

// A push that is refused anyway does not wait; too many words at once are no client's.
bool CentreServer::Waits(const Message& message, int client) const {
  constexpr size_t kMostWords = 256;
  return message.kind == kPush && !Fault(client, message) &&
         board_->Of(message.ints[PushHead::kInts]) == PortionBoard::Standing::kIncomplete &&
         peers_[client].inbox.size() <= kMostWords;
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
      if (peer.from >= 0) gate_.End(std::exchange(peer.from, -1));  // it has given that up
      std::erase(want_weights_, client);
      if (setup_.stale == Stale::kWait && message.ints.size() > 1 && message.ints[1]) {
        peer.fetch = message.ints[0];
        want_weights_.push_back(client);
        break;
      }
      SendCentre(*peer.link, message.ints.empty() ? 0 : message.ints[0]);
      peer.told = version();
      break;
    case kPush:
      Push(client, message);
      break;
    case kLeave:
    case kAnew:
      Forget(client);
      break;
    case kBye:
      Forget(client);
      peer.presence = Presence::kBye;
      break;
    default:
      Refuse(client, "it says a word that no client says");
  }
}

// ---- pushes

void CentreServer::Push(int client, Message& message) {
  if (const char* fault = Fault(client, message)) return Refuse(client, fault);
  Peer& peer = peers_[client];
  const auto standing =
      board_ ? board_->Of(message.ints[PushHead::kInts]) : PortionBoard::Standing::kComplete;
  if (standing == PortionBoard::Standing::kIncomplete) {
    return Refuse(client, "its portions do not come");
  }
  const bool finite = standing != PortionBoard::Standing::kBad &&
                      std::isfinite(RealOf(message.ints[1])) &&
                      std::all_of(message.body.begin(), message.body.end(),
                                  [](float value) { return std::isfinite(value); });
  if (!finite) {
    if (++peer.diverged >= kDiverged) return Dismiss(client);
    return Refuse(client, standing == PortionBoard::Standing::kBad
                              ? "a portion of it holds values that are not finite or is of another "
                                "shape"
                              : "it holds values that are not finite");
  }
  peer.diverged = 0;
  GoodPush push{.client = client};
  push.leases.assign(message.ints.begin() + PushHead::kInts, message.ints.end());
  for (const int64_t id : push.leases) {
    const Lease lease = leases_.Get(id);
    push.samples += lease.end - lease.begin;
  }
  push.message = std::move(message);
  if (setup_.when == When::kArrival && setup_.stale != Stale::kWait) {
    return ApplyAlone(std::move(push));
  }
  for (const int64_t id : push.leases) leases_.Hold(id);
  if (setup_.when == When::kClock) {
    const Lease lease = leases_.Get(push.leases[0]);
    clocks_[StepOf(setup_.plan, lease.epoch, lease.begin)].emplace(lease.begin, std::move(push));
    return ApplyClocks();
  }
  if (setup_.when == When::kArrival) {
    peer.from = -1;
    early_.push_back(std::move(push));
    return ApplyInTime();
  }
  peer.waits = true;
  round_.push_back(std::move(push));
}

// The head, then leases that are the client's, each once; a value for each of the centre.
const char* CentreServer::Fault(int client, const Message& push) const {
  if (push.ints.size() <= PushHead::kInts) return "it names no lease";
  if (push.ints[0] < 0 || push.ints[0] > version()) return "it is made from a version that is not";
  if (push.body.size() != centre_.portion().size()) return "it is of another shape";
  if (setup_.stale == Stale::kWait && push.ints[0] != peers_[client].from) {
    return "it is made from weights that were not given for it";
  }
  if (setup_.when == When::kClock && push.ints.size() != PushHead::kInts + 1) {
    return "it names several shards";
  }
  std::vector<int64_t> ids(push.ints.begin() + PushHead::kInts, push.ints.end());
  std::sort(ids.begin(), ids.end());
  if (std::adjacent_find(ids.begin(), ids.end()) != ids.end()) return "it names a lease twice";
  const bool own =
      std::all_of(ids.begin(), ids.end(), [&](int64_t id) { return leases_.Owns(id, client); });
  return own ? nullptr : "it names a lease that is not its own";
}

void CentreServer::Refuse(int client, const char* why) {
  Peer& peer = peers_[client];
  if (++centre_.client(client).refused <= kNamedRefusals && setup_.log) {
    setup_.log->Warn("server", "refused a push of {}: {}", NameOf(client), why);
  }
  Forget(client);
  peer.link->Send({.kind = kRefused});
}

void CentreServer::Dismiss(int client) {
  Peer& peer = peers_[client];
  ++centre_.client(client).refused;
  Forget(client);
  peer.presence = Presence::kDismissed;
  peer.link->Send({.kind = kDismissed});
  if (setup_.log) {
    setup_.log->Warn("server", "{} is dismissed: its last {} pushes were not finite",
                     NameOf(client), kDiverged);
  }
}

void CentreServer::ApplyAlone(GoodPush push) {
  const int64_t behind = version() - push.version();
  float share = 1;
  if (behind > setup_.staleness && setup_.stale == Stale::kDrop) {
    return Refuse(push.client, "it is staler than strategy.staleness");
  }
  if (behind > setup_.staleness && setup_.stale == Stale::kScale) {
    share = float(setup_.staleness + 1) / float(behind + 1);
  }
  Link& link = *peers_[push.client].link;
  const int64_t step = leases_.closed_positions() / setup_.plan.batch;
  if (board_) {
    board_->Apply(push.leases[0], step, share);
    // What came to the others.
    bytes_received_ += (centre().size() - centre_.portion().size()) * sizeof(float);
  }
  centre_.Apply({&push, 1}, step, share);
  if (setup_.answers) SendCentre(link);
}

// Whatever does not make an older one too stale.
void CentreServer::ApplyInTime() {
  for (;;) {
    const auto next = std::find_if(early_.begin(), early_.end(), [&](const GoodPush& push) {
      return gate_.MayApply(push.version(), version());
    });
    if (next == early_.end()) return;
    GoodPush push = std::move(*next);
    early_.erase(next);
    gate_.End(push.version());
    ApplyAlone(std::move(push));
  }
}

// To compute from, as soon as one more may.
void CentreServer::GiveWeights() {
  while (gate_.MayBegin()) {
    const auto next = std::find_if(want_weights_.begin(), want_weights_.end(), [&](int client) {
      return peers_[client].presence == Presence::kHere;
    });
    if (next == want_weights_.end()) return;
    Peer& peer = peers_[*next];
    want_weights_.erase(next);
    peer.from = version();
    gate_.Begin(version());
    SendCentre(*peer.link, peer.fetch);
  }
}

// The version is the number of complete clocks.
void CentreServer::ApplyClocks() {
  for (;;) {
    const auto clock = clocks_.find(version());
    if (clock == clocks_.end()) return;
    int64_t here = 0;
    for (const auto& [begin, push] : clock->second) here += push.samples;
    if (here < StepSamples(setup_.plan, version())) return;
    std::vector<GoodPush> parts;
    for (auto& [begin, push] : clock->second) parts.push_back(std::move(push));
    clocks_.erase(clock);
    centre_.Apply(parts, version(), 1);
  }
}

// Complete when everyone who is here has pushed, or has nothing to push and waits for work.
void CentreServer::ApplyRound() {
  if (round_.empty()) return;
  const bool complete = std::all_of(peers_.begin(), peers_.end(), [](const Peer& p) {
    return p.presence != Presence::kHere || p.waits || (p.asks && !p.holds);
  });
  if (!complete) return;
  // In the order of clients: not of arrivals, which differs from run to run.
  std::sort(round_.begin(), round_.end(),
            [](const GoodPush& a, const GoodPush& b) { return a.client < b.client; });
  centre_.Apply(round_, leases_.closed_positions() / setup_.plan.batch, 1);
  round_.clear();
  for (Peer& peer : peers_) {
    if (std::exchange(peer.waits, false)) SendCentre(*peer.link);
  }
}

// ---- what clients are told

void CentreServer::Answer(int client) {
  Peer& peer = peers_[client];
  if (!peer.asks || peer.presence != Presence::kHere) return;
  Message answer;
  if (answer = Grant(client); !answer.ints.empty()) {
  } else if (peer.holds) {
    answer = {.kind = kDrain};
  } else if (leases_.finished() || (stopping_ && leases_.open() == 0)) {
    answer = {.kind = kEnd};
  } else {
    return;  // others still work; what they drop is for this one
  }
  peer.asks = false;
  bytes_sent_ += BytesOf(answer);
  peer.link->Send(std::move(answer));
}

// As many as the client can work off soon, but no more than half its share of what is left: an
// epoch shall not end with all waiting for one (guided self-scheduling; Polychronopoulos, Kuck
// 1987).
Message CentreServer::Grant(int client) {
  Message grant{.kind = kGrant};
  const bool clocked = setup_.when == When::kClock;
  if (stopping_ && !clocked) return grant;
  const int64_t share = leases_.untaken() / (2 * setup_.lease * int64_t(peers_.size()));
  const int64_t count =
      std::clamp<int64_t>(share, 1, std::clamp<int64_t>(peers_[client].wants, 1, 64));
  for (int64_t i = 0; i < count; ++i) {
    const auto next = leases_.next();
    if (!next) break;
    const int64_t clock = StepOf(setup_.plan, leases_.epoch(), *next);
    if (clocked && clock > version() + setup_.staleness) break;
    if (stopping_ && clock > newest_clock_) break;  // what is begun is completed
    newest_clock_ = std::max(newest_clock_, clock);
    const auto lease = leases_.Take(client);
    if (grant.ints.empty()) grant.ints = {lease->epoch};
    grant.ints.insert(grant.ints.end(), {lease->id, lease->begin, lease->end});
  }
  return grant;
}

// Once for all that has arrived; a link that is still busy with the last one forgets it.
void CentreServer::Broadcast() {
  if (!setup_.broadcasts) return;
  for (Peer& peer : peers_) {
    if (peer.presence != Presence::kHere || peer.told >= version()) continue;
    Message news = centre_.Carry(kNews, {version(), Here()});
    bytes_sent_ += BytesOf(news);
    peer.link->Offer(std::move(news));
    peer.told = version();
  }
}

void CentreServer::SendCentre(Link& link, int64_t fetch) {
  bytes_sent_ += centre().size() * sizeof(float);  // of all servers
  link.Send(centre_.Carry(kCentre, {version(), Here(), fetch}));
}

}  // namespace trireme
