#include "strategy/server/parameter_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "base/error.h"
#include "strategy/server/protocol.h"
#include "transport/forked.h"

namespace trireme {
namespace {

constexpr int64_t kNamedRefusals = 1;  // of a client; the rest is only counted
constexpr size_t kMostClients = 4096;
constexpr int64_t kMostLeases = 4096;  // at a time
constexpr char kLifeKey[] = "centre.life";
constexpr double kLinger_s = 2;  // at the end, for clients that are away: they hear that it is over

int64_t NewLife() {
  std::random_device random;
  return int64_t(random()) % kLives;
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

ParameterServer::ParameterServer(Setup setup, std::span<const float> centre,
                                 std::unique_ptr<PartitionSequencer> sequencer)
    : setup_(std::move(setup)),
      life_(setup_.life.value_or(NewLife())),
      centre_(setup_.rule,
              {{.samples = setup_.plan.samples,
                .total = setup_.positions,
                .size = setup_.lease,
                .cut = setup_.when == When::kClock ? CutAtShards(setup_.plan) : LeaseTable::Cut(),
                .border = setup_.border},
               life_ << kLivesFrom},
              centre, std::move(sequencer), setup_.threads),
      leases_(centre_.leases()),
      sequencer_(centre_.sequencer()),
      ledger_(MakeLedger()),
      board_(setup_.memory && setup_.memory->one_fate()
                 ? std::make_unique<HandoutBoard>(*setup_.memory)
                 : nullptr),
      gate_({setup_.plan, setup_.when, setup_.staleness, setup_.stale}, centre_,
            [this](int) { Applied(); }) {
  for (Link* link : setup_.clients) Meet(link, fmt::format("client {}", peers_.size() + 1));
}

std::unique_ptr<MemoryLedger> ParameterServer::MakeLedger() {
  if (!setup_.memory) return nullptr;
  const MemoryLedger::Setup setup{
      .timeout_s = timeout_s(), .handout = setup_.memory->one_fate(), .log = setup_.log};
  return std::make_unique<MemoryLedger>(*setup_.memory, centre_, setup);
}

void ParameterServer::Meet(Link* link, std::string name) {
  // Who comes over a network is here when it is heard, and nobody waits for it before.
  const Presence presence = setup_.acceptor ? Presence::kGone : Presence::kHere;
  peers_.push_back({.link = link, .presence = presence});
  centre_.AddClient(std::move(name));
}

void ParameterServer::Save(StateWriter& writer) const {
  centre_.Save(writer);
  writer.Int(kLifeKey, life_);
}

void ParameterServer::Load(const StateReader& reader) {
  const bool taken = reader.Has(kLifeKey) && reader.Int(kLifeKey) == life_;  // older runs lack it
  if (taken) life_ = (life_ + 1) % kLives;
  centre_.Load(reader, life_ << kLivesFrom);
}

void ParameterServer::Gather() const {
  if (ledger_) return ledger_->Gather();
  centre_.Gather();
}

Server::Progress ParameterServer::progress() const {
  Progress progress = centre_.progress();
  progress.bytes_sent = bytes_sent_;
  progress.bytes_received = bytes_received_;
  return progress;
}

std::vector<ClientStats> ParameterServer::clients() const {
  std::vector<ClientStats> all(centre_.clients().begin(), centre_.clients().end());
  for (size_t c = 0; c < all.size(); ++c) all[c].here = peers_[c].presence == Presence::kHere;
  return all;
}

int64_t ParameterServer::refused() const {
  int64_t sum = 0;
  for (const ClientStats& client : centre_.clients()) sum += client.refused;
  return sum;
}

Staleness ParameterServer::staleness() const {
  Staleness all;
  for (const ClientStats& client : centre_.clients()) all.Add(client.staleness);
  return all;
}

// ---- the loop

void ParameterServer::Run(ServerKeeper* keeper) {
  try {
    Serve(keeper);
  } catch (const MemoryRenewed& error) {  // the next life puts its last snapshot there
    throw Outdated("{}", error.what());
  }
}

void ParameterServer::Serve(ServerKeeper* keeper) {
  keeper_ = keeper;
  const struct Listening {  // no link wakes a server that is gone
    ParameterServer& server;
    explicit Listening(ParameterServer& s) : server(s) {
      for (Peer& peer : s.peers_) peer.link->SetWakeEvent(&s.wake_);
      if (s.setup_.acceptor) s.setup_.acceptor->SetWakeEvent(&s.wake_);
      if (s.sequencer_) s.sequencer_->SetWakeEvent(&s.wake_);
    }
    ~Listening() {
      for (Peer& peer : server.peers_) peer.link->SetWakeEvent(nullptr);
      if (server.setup_.acceptor) server.setup_.acceptor->SetWakeEvent(nullptr);
      if (server.sequencer_) server.sequencer_->SetWakeEvent(nullptr);
    }
  } listening(*this);
  if (sequencer_) sequencer_->SendOut(life_);
  if (ledger_) ledger_->Begin();
  if (board_) board_->Begin(leases_, ledger_->read());

  const double encourage_s = std::min(5.0, timeout_s() / 4);
  const double look_s = std::min(0.02, encourage_s);
  deserted_since_ = After(0);
  Deadline encourage = After(encourage_s);
  while (!Over()) {
    if (keeper && sequencer_ && sequencer_->signal()) keeper->Signalled(sequencer_->signal());
    if (keeper && keeper->Stop()) stopping_ = true;
    if (board_ && stopping_) board_->Stop();
    const bool idle = !HearAll();
    ApplyRound();  // those who left are not waited for
    gate_.ApplyInTime();
    GiveWeights();
    EndEpochs();
    for (int c = 0; c < int(peers_.size()); ++c) Answer(c);
    Broadcast();
    if (keeper) keeper->Look(*this);
    if (After(0) >= encourage) {  // a slow peer is no reason to give the server up
      encourage = After(encourage_s);
      if (board_) board_->Beat();
      for (Peer& peer : peers_) {
        if (peer.asks || peer.waits || !peer.inbox.empty() || setup_.stale == Stale::kWait) {
          // What is offered replaces a broadcast that still waits in the link: then that again.
          if (setup_.broadcasts) {
            peer.told = -1;
          } else {
            peer.link->Offer({.kind = kWait});
          }
        }
      }
    }
    if (idle) wake_.Wait(After(look_s));
  }
}

bool ParameterServer::HearAll() {
  bool heard = false;
  // After a pause of its own (a stopped process, a long wait for the disk) it first listens.
  constexpr double kPause_s = 1, kListen_s = 2;
  if (After(-kPause_s) > looked_at_) judges_from_ = After(kListen_s);
  looked_at_ = After(0);
  while (setup_.acceptor && peers_.size() < kMostClients) {
    Acceptor::Guest guest = setup_.acceptor->Next();
    if (!guest.link) break;
    if (setup_.log) setup_.log->Info("server", "{} has joined", guest.name);
    guest.link->SetWakeEvent(&wake_);
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
  if (ledger_) heard |= ledger_->Read();
  if (board_) board_->Read(ledger_->read());
  if (!sequencer_) return heard;
  heard |= sequencer_->Hear([&](int64_t id, int client) { return leases_.Owns(id, client); });
  for (int c = 0; c < int(peers_.size()); ++c) ReadInbox(c);
  sequencer_->Sweep([&](int64_t id) { return leases_.Open(id); });
  return heard;
}

void ParameterServer::EndEpochs() {
  while (leases_.epoch_over() && !leases_.last_epoch() && !stopping_) {
    // Behind a barrier nothing comes meanwhile, and clients hear that the server is there.
    if (setup_.border == EpochBorder::kBarrier && keeper_ && keeper_->Busy()) return;
    if (keeper_) keeper_->EpochEnded(*this);
    centre_.NextEpoch();
    if (board_) board_->Allow(leases_.epoch());
  }
}

int64_t ParameterServer::Here() const {
  return std::count_if(peers_.begin(), peers_.end(),
                       [](const Peer& p) { return p.presence == Presence::kHere; });
}

double ParameterServer::timeout_s() const {
  return setup_.clients.empty() ? setup_.acceptor->timeout_s() : setup_.clients[0]->timeout_s();
}

// All that was begun is in, and nobody is here: they have said goodbye, or those who may return
// have not done so in time.
bool ParameterServer::Over() {
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
  // Who said goodbye does not come back; others may, where there is an acceptor.
  if (!away && (done || (!setup_.acceptor && !dismissed))) return true;
  if (dismissed && !away) {
    throw Error(
        "the last {} pushes of every worker were not finite; lower optimizer.lr or set "
        "trainer.clip",
        PushGate::kDiverged);
  }
  const double patience_s = done ? std::min(timeout_s(), kLinger_s) : timeout_s();
  if (After(-patience_s) < deserted_since_) return false;
  if (done) return true;
  throw PeerLost("the server has no clients left, and only {} of {} positions are done",
                 leases_.closed_positions(), setup_.positions);
}

// ---- clients

void ParameterServer::TakeBack(int client) {
  if (ledger_) ledger_->Fence(client);
  leases_.Drop(client);
  gate_.GiveUp(client);
}

// What it has asked for is answered when it is back: in the same life it does not ask again.
void ParameterServer::Lose(int client) {
  TakeBack(client);
  Presence& presence = peers_[client].presence;
  if (presence == Presence::kHere) presence = Presence::kGone;
}

void ParameterServer::Forget(int client) {
  TakeBack(client);
  peers_[client].asks = peers_[client].holds = false;
  std::erase(want_weights_, client);
}

void ParameterServer::Hear(int client, Arrival arrival, Message& message) {
  Peer& peer = peers_[client];
  peer.silent = false;
  switch (arrival) {
    case Arrival::kNothing:
      break;
    case Arrival::kMessage:
      bytes_received_ += BytesOf(message);
      if (peer.presence != Presence::kHere && peer.presence != Presence::kGone) break;
      peer.presence = Presence::kHere;
      if (sequencer_ && message.kind != kAsk && message.kind != kAnew) {
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
      peer.least = peer.wants = 1;
      peer.inbox.clear();
      if (setup_.log) setup_.log->Info("server", "{} is back", NameOf(client));
      break;
  }
}

// One that is silent for longer than it ever was is not waited for. If it had asked, it has nothing
// to say when it is heard again, and waits.
void ParameterServer::Watch(int client) {
  Peer& peer = peers_[client];
  const double silent_s = peer.link->overdue_s();
  if (silent_s <= 0) {
    if (std::exchange(peer.silent, false)) peer.presence = Presence::kHere;
    return;
  }
  if (peer.presence != Presence::kHere) return;
  const int64_t open = leases_.open();
  Lose(client);
  peer.silent = true;
  ++centre_.client(client).removed;
  if (setup_.log) {
    setup_.log->Warn(
        "server",
        "{} has been silent for {:.1f} s and was removed; {} of its leases are free again",
        NameOf(client), silent_s, open - leases_.open());
  }
}

// A client's words count in its order: what follows a push, a fetch above all, waits with it.
void ParameterServer::ReadInbox(int client) {
  std::deque<Message>& inbox = peers_[client].inbox;
  while (!inbox.empty() && !Waits(inbox.front(), client)) {
    Message message = std::move(inbox.front());
    inbox.pop_front();
    Handle(client, message);
  }
}

// A push that is refused anyway does not wait; too many words at once are no client's.
bool ParameterServer::Waits(const Message& message, int client) const {
  constexpr size_t kMostWords = 256;
  return message.kind == kPush && gate_.AwaitsPartitions(client, message) &&
         peers_[client].inbox.size() <= kMostWords;
}

void ParameterServer::Handle(int client, Message& message) {
  Peer& peer = peers_[client];
  switch (message.kind) {
    case kAsk:
      peer.asks = true;
      peer.told_to_wait = false;
      peer.holds = !message.ints.empty() && message.ints[0] != 0;
      peer.wants = message.ints.size() < 2 ? 1 : message.ints[1];
      peer.least = message.ints.size() < 3 ? 1 : message.ints[2];
      break;
    case kFetch:
      if (ledger_) return Refuse(client, "the centre lies in memory");
      gate_.GiveUp(client);
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
      if (ledger_) return Refuse(client, "the centre lies in memory");
      Push(client, message);
      break;
    case kAnew:
      if (ledger_) ++centre_.client(client).refused;
      Forget(client);
      break;
    case kLeave:
      Forget(client);
      break;
    case kBye:
      Forget(client);
      peer.presence = Presence::kBye;
      break;
    default:
      Refuse(client, "unexpected message kind");
  }
}

// ---- pushes

void ParameterServer::Push(int client, Message& message) {
  const PushGate::Verdict verdict = gate_.Take(client, message);
  if (verdict.diverged) return Dismiss(client);
  if (verdict.fault) return Refuse(client, verdict.fault);
  EndEpochs();  // before the next push, which may be of another epoch
  if (setup_.when == When::kRound) peers_[client].waits = true;
}

void ParameterServer::Refuse(int client, const char* why) {
  Peer& peer = peers_[client];
  if (++centre_.client(client).refused <= kNamedRefusals && setup_.log) {
    setup_.log->Warn("server", "refused a push from {}: {}", NameOf(client), why);
  }
  Forget(client);
  peer.link->Send({.kind = kRefused});
}

void ParameterServer::Dismiss(int client) {
  Peer& peer = peers_[client];
  ++centre_.client(client).refused;
  Forget(client);
  peer.presence = Presence::kDismissed;
  peer.link->Send({.kind = kDismissed});
  if (setup_.log) {
    setup_.log->Warn("server", "{} was dismissed: its last {} pushes were not finite",
                     NameOf(client), PushGate::kDiverged);
  }
}

void ParameterServer::Applied() {
  // What came to the others.
  if (sequencer_) bytes_received_ += (centre().size() - centre_.partition().size()) * sizeof(float);
}

// To compute from, as soon as one more may.
void ParameterServer::GiveWeights() {
  while (gate_.MayBegin()) {
    const auto next = std::find_if(want_weights_.begin(), want_weights_.end(), [&](int client) {
      return peers_[client].presence == Presence::kHere;
    });
    if (next == want_weights_.end()) return;
    const int client = *next;
    want_weights_.erase(next);
    gate_.Begin(client);
    SendCentre(*peers_[client].link, peers_[client].fetch);
  }
}

// Complete when everyone who is here has pushed, or has nothing to push and waits for work.
void ParameterServer::ApplyRound() {
  const bool complete = std::all_of(peers_.begin(), peers_.end(), [](const Peer& p) {
    return p.presence != Presence::kHere || p.waits || (p.asks && !p.holds);
  });
  if (!complete || !gate_.ApplyRound()) return;
  for (Peer& peer : peers_) {
    if (std::exchange(peer.waits, false)) SendCentre(*peer.link);
  }
}

// ---- what clients are told

void ParameterServer::Answer(int client) {
  Peer& peer = peers_[client];
  if (!peer.asks || peer.presence != Presence::kHere) return;
  Message answer;
  if (answer = Grant(client); !answer.ints.empty()) {
  } else if (peer.holds) {
    answer = {.kind = kDrain};
  } else if (leases_.finished() || (stopping_ && leases_.open() == 0)) {
    answer = {.kind = kEnd};
  } else {  // others still work; what they drop is for this one
    const bool told = std::exchange(peer.told_to_wait, true);
    if (ledger_ && !told) peer.link->Offer({.kind = kWait});  // it takes weights meanwhile
    return;
  }
  peer.asks = false;
  bytes_sent_ += BytesOf(answer);
  peer.link->Send(std::move(answer));
}

// As many as the client can work off soon, but no more than half its share of what is left: the end
// shall not find all waiting for one (guided self-scheduling; Polychronopoulos, Kuck 1987).
Message ParameterServer::Grant(int client) {
  Message grant{.kind = kGrant};
  const bool clocked = setup_.when == When::kClock;
  if (stopping_ && !clocked) return grant;
  const int64_t share = leases_.untaken() / (2 * setup_.lease * int64_t(peers_.size()));
  const int64_t most = std::clamp<int64_t>(peers_[client].wants, 1, kMostLeases);
  const int64_t count =
      std::clamp<int64_t>(share, std::clamp<int64_t>(peers_[client].least, 1, most), most);
  for (int64_t i = 0; i < count; ++i) {
    const auto next = leases_.next();
    if (!next || (!grant.ints.empty() && next->epoch != grant.ints[0])) break;
    const int64_t clock = StepOf(setup_.plan, next->epoch, next->position);
    if (clocked && clock > version() + setup_.staleness) break;
    if (stopping_ && clock > newest_clock_) break;  // what is begun is completed
    newest_clock_ = std::max(newest_clock_, clock);
    const auto lease = leases_.Take(client);
    if (grant.ints.empty()) grant.ints = {lease->epoch};
    grant.ints.insert(grant.ints.end(), {lease->id, lease->begin, lease->end});
  }
  if (ledger_ && !grant.ints.empty()) {
    grant.ints.insert(grant.ints.end(), {client, ledger_->fence(client)});
  }
  return grant;
}

// Once for all that has arrived; a link that is still busy with the last one forgets it.
void ParameterServer::Broadcast() {
  if (!setup_.broadcasts) return;
  for (Peer& peer : peers_) {
    if (peer.presence != Presence::kHere || peer.told >= version()) continue;
    bytes_sent_ += centre().size() * sizeof(float);  // of all servers
    peer.link->OfferShared(centre_.Carry(kNews, {version(), Here()}));
    peer.told = version();
  }
}

// Where there is one server nobody looks at the number of a fetch, and all are sent the same.
void ParameterServer::SendCentre(Link& link, int64_t fetch) {
  bytes_sent_ += centre().size() * sizeof(float);  // of all servers
  link.SendShared(centre_.Carry(kCentre, {version(), Here(), sequencer_ ? fetch : 0}));
}

}  // namespace trireme
