#include "strategy/strategy.h"

#include <algorithm>
#include <utility>

namespace trireme {

Strategy::Strategy(std::unique_ptr<Inner> inner, std::unique_ptr<Exchange> exchange,
                   std::unique_ptr<WorkSource> source, bool records)
    : inner_(std::move(inner)),
      exchange_(std::move(exchange)),
      source_(std::move(source)),
      records_(records) {}

Strategy::~Strategy() = default;

Slice Strategy::Place(Role role, size_t floats, Device& device) {
  const Slice slice = inner_->Place(role, floats, device);
  if (slice.device) return slice;
  return memory_.emplace_back(device, floats);
}

void Strategy::Begin(Replica& replica) {
  replica_ = &replica;
  inner_->Begin(replica);
  exchange_->Begin(replica);
}

Turn Strategy::Next(int64_t step, Work& work) { return source_->Next(replica_, step, work); }

void Strategy::Stop() {
  exchange_->Stop();
  source_->Stop();
}

void Strategy::BeforeStep(Replica& replica) {
  announced_ = 0;
  inner_->BeforeStep(replica);
  exchange_->BeforeStep(replica);
}

void Strategy::BucketReady(Replica& replica, const Bucket& bucket, const Event& event) {
  ++announced_;
  inner_->BucketReady(replica, bucket, event);
}

Event Strategy::AfterStep(Replica& replica) {
  if (announced_ < replica.buckets.size()) AnnounceRest(replica);
  const Observer& observer = replica.observer;
  observer.Tell(Phase::kReduce, replica.work.step);
  SpanSink* const spans = observer.tracing();
  const Event began = spans ? replica.queue.Mark() : Event();
  // Those who advance together have no samples (the last step of an epoch may have few): nothing to
  // follow.
  const bool idle = replica.work.batch == 0;
  inner_->Agree(replica, [&] {
    if (!idle) Update(replica);
  });
  if (spans) {
    agree_.Add(began, replica.queue.Mark(), 0,
               {spans, Track::kCompute, SpanKind::kWait, replica.work.step});
  }
  source_->Done();
  exchange_->AfterStep(replica);
  return replica.queue.Record();
}

void Strategy::EndEpoch(double seconds) {
  source_->EndEpoch(seconds);
  if (!ShardsOfRanks().empty()) inner_->SetShards(ShardsOfRanks());
}

void Strategy::Rehearse(Replica& replica) {
  if (announced_ < replica.buckets.size()) AnnounceRest(replica);
  inner_->Agree(replica, [] {});
  inner_->AwaitState(replica);
  replica.queue.Sync();
  inner_->Check();
}

void Strategy::Update(Replica& replica) {
  if (!exchange_->Updates()) {  // others do
    if (replica.updater.scales_loss()) replica.updater.Check(replica.queue, replica.summands[0]);
    return;
  }
  const Observer& observer = replica.observer;
  observer.Tell(Phase::kUpdate, replica.work.step);
  const auto apply = [&] {
    Gradient sum(replica.summands[0], replica.unwritten);
    sum.known_finite = inner_->SumIsFinite();
    exchange_->Update(replica, sum);
    observer.Tell(Phase::kReduce, replica.work.step);  // others may have to hear of it
  };
  // Two marks cost 100 ns, a tiny model's whole update twice that: of short ones one of some is
  // measured.
  constexpr unsigned kSome = 8;
  constexpr double kShort_s = 20e-6;
  const unsigned counts = update_.last_s() < kShort_s ? kSome : 1;
  const bool measured = updates_++ % counts == 0;
  SpanSink* const spans = observer.tracing();
  if (!measured && !spans) return apply();
  const Event began = replica.queue.Mark();
  apply();
  update_.Add(began, replica.queue.Mark(), measured ? counts : 0,
              {spans, Track::kCompute, SpanKind::kUpdate, replica.work.step});
}

// Nobody announced these (nobody listens, or more workers than shards: no backward), and others may
// wait for them.
void Strategy::AnnounceRest(Replica& replica) {
  const Event event = replica.queue.Record();
  for (const Bucket& bucket : replica.buckets.subspan(announced_)) {
    inner_->BucketReady(replica, bucket, event);
  }
}

void Strategy::End(Replica& replica) {
  inner_->AwaitState(replica);
  exchange_->End(replica);
  source_->End();
}

void Strategy::Snapshot(Replica& replica, Slice into) {
  inner_->AwaitState(replica);
  exchange_->Snapshot(replica, into);
  replica.queue.Sync();
  inner_->Check();
}

// With a server it keeps the run, and momentum starts anew.
void Strategy::Save(Replica& replica, StateWriter& writer) {
  if (!exchange_->OwnsState()) return;
  exchange_->Save(replica, writer);
  source_->Save(writer);
  replica.updater.Save(replica.queue, writer);
}

void Strategy::Load(Replica& replica, const StateReader& reader) {
  if (!exchange_->OwnsState()) return;
  exchange_->Load(replica, reader);
  source_->Load(reader);
  if (!ShardsOfRanks().empty()) inner_->SetShards(ShardsOfRanks());
  replica.updater.Load(replica.queue, reader);
}

Traffic Strategy::traffic() const {
  const Volume volume = exchange_->volume().value_or(inner_->volume());
  return {.communication_s = inner_->waited_s() + exchange_->waited_s(),
          .hidden_s = std::max(0.0, inner_->busy_s() - inner_->waited_s()),
          .update_s = update_.seconds(),
          .bytes_sent = volume.sent,
          .bytes_received = volume.received};
}

}  // namespace trireme
