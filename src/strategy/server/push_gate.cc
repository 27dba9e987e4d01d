#include "strategy/server/push_gate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "flat/cpu/loops.h"
#include "strategy/server/protocol.h"

namespace trireme {
namespace {

// What makes its values useless; null: nothing. A push that moves the centre well must not spoil
// the metrics of all others with its head.
const char* FaultOfValues(const Message& push, int64_t samples) {
  constexpr double kMostWaited_s = 1e7;  // no push comes that late
  const PushHead head = PushHead::Of(push.ints);
  if (!std::isfinite(head.loss_sum) ||
      !std::isfinite(loops::Largest(push.body.data(), push.body.size()))) {
    return "it holds values that are not finite";
  }
  if (std::abs(head.loss_sum) > double(std::numeric_limits<float>::max()) * double(samples)) {
    return "its loss is more than its samples can have";
  }
  // A count that was summed in bf16 is a little off.
  if (!(head.correct >= 0 && head.correct <= 1.01 * double(samples) + 1)) {
    return "it has more correct predictions than samples, or less than none";
  }
  if (!(head.waited_s >= 0 && head.waited_s <= kMostWaited_s)) {
    return "it has waited for a time that cannot be";
  }
  if (!head.OverflowsCanBe()) {
    return "it has overflowed more often than can be";
  }
  return nullptr;
}

}  // namespace

PushGate::PushGate(const Rules& rules, ServerState& centre, std::function<void(int client)> applied)
    : rules_(rules),
      centre_(centre),
      leases_(centre.leases()),
      applied_(std::move(applied)),
      stale_gate_(rules.staleness) {}

// ---- does it count?

// The head, then leases that are the client's, each once; a value for each of the centre.
const char* PushGate::Fault(int client, const Message& push) const {
  if (push.ints.size() <= PushHead::kInts) return "it names no lease";
  if (push.ints[0] < 0 || push.ints[0] > centre_.version()) {
    return "it is based on a version that does not exist";
  }
  if (push.body.size() != centre_.partition().size()) return "it has the wrong number of values";
  if (rules_.stale == Stale::kWait) {
    const auto from = from_.find(client);
    if (from == from_.end() || push.ints[0] != from->second) {
      return "it is based on weights that were not sent for it";
    }
  }
  if (rules_.when == When::kClock && push.ints.size() != PushHead::kInts + 1) {
    return "it names several shards";
  }
  std::vector<int64_t> ids(push.ints.begin() + PushHead::kInts, push.ints.end());
  std::sort(ids.begin(), ids.end());
  if (std::adjacent_find(ids.begin(), ids.end()) != ids.end()) return "it names a lease twice";
  const bool own =
      std::all_of(ids.begin(), ids.end(), [&](int64_t id) { return leases_.Owns(id, client); });
  return own ? nullptr : "it names a lease that is not its own";
}

PartitionSequencer::Standing PushGate::StandingOf(const Message& push) const {
  const PartitionSequencer* sequencer = centre_.sequencer();
  return sequencer ? sequencer->Of(push.ints[PushHead::kInts])
                   : PartitionSequencer::Standing::kComplete;
}

bool PushGate::AwaitsPartitions(int client, const Message& push) const {
  return !Fault(client, push) && StandingOf(push) == PartitionSequencer::Standing::kIncomplete;
}

PushGate::Verdict PushGate::Take(int client, Message& message) {
  if (const char* fault = Fault(client, message)) return {fault};
  const auto standing = StandingOf(message);
  if (standing == PartitionSequencer::Standing::kIncomplete) return {"its partitions are missing"};
  const char* fault =
      standing == PartitionSequencer::Standing::kBad
          ? "one of its partitions holds values that are not finite or has the wrong size"
          : FaultOfValues(message, SamplesOf(message));
  if (fault) return {.fault = fault, .diverged = ++diverged_[client] >= kDiverged};
  diverged_.erase(client);
  const bool at_once = rules_.when == When::kArrival && rules_.stale != Stale::kWait;
  if (at_once && rules_.stale == Stale::kDrop &&
      centre_.version() - message.ints[0] > rules_.staleness) {
    return {"it is staler than strategy.staleness"};
  }
  GoodPush push = Accept(client, message);
  if (at_once) {
    ApplyAlone(std::move(push));
    return {};
  }
  for (const int64_t id : push.leases) leases_.Hold(id);
  switch (rules_.when) {
    case When::kArrival:
      from_.erase(client);
      early_.push_back(std::move(push));
      ApplyInTime();
      break;
    case When::kClock: {
      const Lease& lease = leases_.Get(push.leases[0]);
      clocks_[StepOf(rules_.plan, lease.epoch, lease.begin)].emplace(lease.begin, std::move(push));
      ApplyClocks();
      break;
    }
    case When::kRound:
      round_.push_back(std::move(push));
      break;
  }
  return {};
}

// Of its leases.
int64_t PushGate::SamplesOf(const Message& push) const {
  int64_t samples = 0;
  for (size_t i = PushHead::kInts; i < push.ints.size(); ++i) {
    const Lease& lease = leases_.Get(push.ints[i]);
    samples += lease.end - lease.begin;
  }
  return samples;
}

GoodPush PushGate::Accept(int client, Message& message) const {
  GoodPush push{.client = client};
  push.leases.assign(message.ints.begin() + PushHead::kInts, message.ints.end());
  push.samples = SamplesOf(message);
  push.message = std::move(message);
  return push;
}

// ---- when?

// As steps are counted in step: the last of an epoch may be short.
int64_t PushGate::Progress() const {
  const int64_t epoch = leases_.epoch();
  return StepOf(rules_.plan, epoch, leases_.closed_positions() - epoch * rules_.plan.samples);
}

void PushGate::ApplyAlone(GoodPush push) {
  const int64_t behind = centre_.version() - push.version();
  float share = 1;
  if (behind > rules_.staleness && rules_.stale == Stale::kScale) {
    share = float(rules_.staleness + 1) / float(behind + 1);
  }
  const int64_t step = Progress();
  if (PartitionSequencer* sequencer = centre_.sequencer())
    sequencer->Apply(push.leases[0], push.samples, step, share);
  centre_.Apply({&push, 1}, step, share);
  applied_(push.client);
}

// Whatever does not make an older one too stale.
void PushGate::ApplyInTime() {
  for (;;) {
    const auto next = std::find_if(early_.begin(), early_.end(), [&](const GoodPush& push) {
      return stale_gate_.MayApply(push.version(), centre_.version());
    });
    if (next == early_.end()) return;
    GoodPush push = std::move(*next);
    early_.erase(next);
    stale_gate_.End(push.version());
    ApplyAlone(std::move(push));
  }
}

void PushGate::Begin(int client) {
  from_[client] = centre_.version();
  stale_gate_.Begin(centre_.version());
}

void PushGate::GiveUp(int client) {
  const auto from = from_.find(client);
  if (from == from_.end()) return;
  stale_gate_.End(from->second);
  from_.erase(from);
}

// The version is the number of complete clocks.
void PushGate::ApplyClocks() {
  for (;;) {
    const auto clock = clocks_.find(centre_.version());
    if (clock == clocks_.end()) return;
    int64_t here = 0;
    for (const auto& [begin, push] : clock->second) here += push.samples;
    if (here < StepSamples(rules_.plan, centre_.version())) return;
    std::vector<GoodPush> parts;
    for (auto& [begin, push] : clock->second) parts.push_back(std::move(push));
    clocks_.erase(clock);
    centre_.Apply(parts, centre_.version(), 1);
  }
}

bool PushGate::ApplyRound() {
  if (round_.empty()) return false;
  // In the order of clients: not of arrivals, which differs from run to run.
  std::sort(round_.begin(), round_.end(),
            [](const GoodPush& a, const GoodPush& b) { return a.client < b.client; });
  centre_.Apply(round_, Progress(), 1);
  round_.clear();
  return true;
}

}  // namespace trireme
