#include "strategy/server/server_state.h"

#include <algorithm>

#include "base/error.h"
#include "strategy/server/protocol.h"

namespace trireme {
namespace {

constexpr char kWaited[] = "centre.waited";        // by client, bits of seconds
constexpr char kOverflows[] = "centre.overflows";  // by client

}  // namespace

ServerState::ServerState(const MakeRule& rule, LeaseTable leases, std::span<const float> values,
                         std::unique_ptr<PartitionSequencer> sequencer, int threads)
    : team_(threads),
      device_(&team_),
      queue_(device_.NewQueue()),
      sequencer_(std::move(sequencer)),
      values_(device_, sequencer_ ? sequencer_->own().size : values.size()),
      rule_(rule(device_)),
      leases_(std::move(leases)) {
  std::copy_n(values.begin(), values_.slice().size, values_.slice().host().begin());
  if (sequencer_) sequencer_->Begin(values);
}

void ServerState::Apply(std::span<GoodPush> parts, int64_t step, float share) {
  std::vector<ServerRule::Part> bodies;
  // Leases and values change in one go: no snapshot sees one without the other.
  for (GoodPush& part : parts) {
    Count(part);
    std::vector<float>& body = part.message.body;
    bodies.push_back({.body = {body.data(), body.size(), &device_}, .samples = part.samples});
  }
  rule_->Apply(*queue_, bodies, step, share, values_);
  queue_->Sync();
  ++version_;
  carried_.clear();
  spare_ = std::move(parts[0].message.body);
}

void ServerState::Added(const GoodPush& push) {
  Count(push);
  ++version_;
  carried_.clear();
}

void ServerState::Count(const GoodPush& push) {
  for (const int64_t id : push.leases) {
    const Lease& lease = leases_.Close(id);
    if (seen_) seen_(lease);
  }
  ClientStats& numbers = clients_[push.client];
  ++numbers.pushes;
  numbers.samples += push.samples;
  // A clock's own staleness is how far the weights were behind its step.
  numbers.staleness.Add(version_ - push.version());
  ++progress_.updates;
  const PushHead head = PushHead::Of(push.message.ints);
  numbers.waited_s += head.waited_s;
  numbers.overflows += head.overflows;
  progress_.loss_sum += head.loss_sum;
  progress_.correct += head.correct;
  progress_.samples += push.samples;
}

void ServerState::NextEpoch() {
  leases_.NextEpoch();
  progress_.loss_sum = progress_.correct = 0;
  progress_.samples = 0;
}

Server::Progress ServerState::progress() const {
  Server::Progress progress = progress_;
  progress.positions = leases_.closed_positions();
  progress.epochs = leases_.epoch() + (leases_.epoch_over() && leases_.epoch_complete() ? 1 : 0);
  return progress;
}

std::shared_ptr<const Message> ServerState::Carry(int kind, std::vector<int64_t> ints) {
  const auto same = std::ranges::find_if(carried_, [&](const auto& message) {
    return message->kind == kind && message->ints == ints;
  });
  if (same != carried_.end()) return *same;
  std::erase_if(carried_, [&](const auto& message) { return message->kind == kind; });
  const std::span<const float> values = partition();
  spare_.assign(values.begin(), values.end());
  carried_.push_back(std::make_shared<const Message>(
      Message{.kind = kind, .ints = std::move(ints), .body = std::exchange(spare_, {})}));
  return carried_.back();
}

// ---- what is kept

void ServerState::Gather() const {
  if (!sequencer_) return;
  StateImage own;
  rule_->Save(*queue_, own);
  sequencer_->Gather(partition(), std::move(own));
}

void ServerState::Save(StateWriter& writer) const {
  writer.Int("centre.version", version_);
  writer.Ints("centre.leases", leases_.Save());
  writer.Int("centre.updates", progress_.updates);
  writer.Real("centre.loss_sum", progress_.loss_sum);
  writer.Real("centre.correct", progress_.correct);
  writer.Int("centre.samples", progress_.samples);
  writer.Ints("centre.clients", SaveClients());
  std::vector<int64_t> waited;
  for (const ClientStats& numbers : clients_) waited.push_back(BitsOf(numbers.waited_s));
  writer.Ints(kWaited, waited);
  std::vector<int64_t> overflows;
  for (const ClientStats& numbers : clients_) overflows.push_back(numbers.overflows);
  writer.Ints(kOverflows, overflows);
  if (sequencer_) return sequencer_->memory().WriteTo(writer);
  rule_->Save(*queue_, writer);
}

void ServerState::Load(const StateReader& reader, int64_t new_ids) {
  version_ = reader.Int("centre.version");
  leases_.Load(reader.Ints("centre.leases"), new_ids);
  progress_.updates = reader.Int("centre.updates");
  progress_.loss_sum = reader.Real("centre.loss_sum");
  progress_.correct = reader.Real("centre.correct");
  progress_.samples = reader.Int("centre.samples");
  if (version_ < 0 || progress_.updates < 0 || progress_.samples < 0) {
    throw Error("the saved centre is damaged: version {}, {} updates, {} samples", version_,
                progress_.updates, progress_.samples);
  }
  carried_.clear();
  LoadClients(reader.Ints("centre.clients"));
  if (reader.Has(kWaited)) {  // older runs have none
    const auto waited = reader.Ints(kWaited);
    for (size_t c = 0; c < std::min(waited.size(), clients_.size()); ++c) {
      clients_[c].waited_s = RealOf(waited[c]);
    }
  }
  if (reader.Has(kOverflows)) {  // likewise
    const auto overflows = reader.Ints(kOverflows);
    for (size_t c = 0; c < std::min(overflows.size(), clients_.size()); ++c) {
      clients_[c].overflows = overflows[c];
    }
  }
  if (!sequencer_) return rule_->Load(*queue_, reader);
  StateImage own;
  rule_->Save(*queue_, own);  // names
  sequencer_->Load(reader, own);
  rule_->Load(*queue_, own);
}

std::vector<int64_t> ServerState::SaveClients() const {
  std::vector<int64_t> saved;
  for (const ClientStats& numbers : clients_) {
    const auto counts = numbers.staleness.counts();
    saved.insert(saved.end(), {numbers.pushes, numbers.samples, numbers.refused, numbers.removed,
                               int64_t(counts.size())});
    saved.insert(saved.end(), counts.begin(), counts.end());
  }
  return saved;
}

void ServerState::LoadClients(std::span<const int64_t> saved) {
  constexpr size_t kHead = 5;
  for (size_t i = 0; saved.size() >= kHead; ++i) {
    const int64_t counts = saved[4];
    if (counts < 0 || size_t(counts) > saved.size() - kHead) {
      throw Error("the saved numbers of client {} are cut short", i + 1);
    }
    if (i < clients_.size()) {  // with fewer clients now, the others' are forgotten
      ClientStats& numbers = clients_[i];
      numbers.pushes = saved[0];
      numbers.samples = saved[1];
      numbers.refused = saved[2];
      numbers.removed = saved[3];
      numbers.staleness = Staleness::Of(saved.subspan(kHead, size_t(counts)));
    }
    saved = saved.subspan(kHead + size_t(counts));
  }
}

}  // namespace trireme
