#include "strategy/composed.h"

#include <algorithm>

#include "base/clock.h"
#include "flat/arithmetic.h"

namespace trireme {

Composed::Composed(Choices choices) : choices_(std::move(choices)) {}

Slice Composed::Place(Role role, size_t floats, Device& device) {
  const Slice slice = choices_.inner->Place(role, floats, device);
  if (slice.device) return slice;
  return memory_.emplace_back(device, floats);
}

void Composed::Begin(Replica& replica) {
  replica_ = &replica;
  choices_.inner->Begin(replica);
  if (choices_.merge) choices_.merge->Begin(replica);
  if (choices_.anchor) choices_.anchor->Begin(replica);
}

Turn Composed::Next(int64_t step, Work& work) {
  if (choices_.centre) return NextLease(work);
  if (choices_.handout) {
    image_is_new_ = false;
    return choices_.handout->Next(work, [&] { TakeImage(); });
  }
  if (step >= choices_.plan.steps) return Turn::kEnd;
  const auto work_of = choices_.anchor ? LocalWorkOf : WorkOf;
  work_of(choices_.plan, step, choices_.worker, choices_.workers, work);
  return Turn::kStep;
}

Turn Composed::NextLease(Work& work) {
  for (;;) {
    Lease lease;
    switch (choices_.centre->Claim(!open_.empty(), lease)) {
      case Client::Answer::kLease:
        LeasedWork(choices_.plan, lease.epoch, lease.begin, lease.end, work);
        work.leases.assign(1, lease.id);
        return Turn::kStep;
      case Client::Answer::kDrain:
        Meet();
        break;
      case Client::Answer::kVoid:
        open_.clear();
        since_ = 0;
        choices_.merge->Reload(*replica_);
        break;
      case Client::Answer::kEpochEnd:
        ++epochs_told_;
        return Turn::kEpochEnd;
      case Client::Answer::kEnd:
        return Turn::kEnd;
    }
  }
}

void Composed::BeforeStep(Replica& replica) {
  announced_ = 0;
  choices_.inner->BeforeStep(replica);
  if (choices_.merge && since_ + 1 >= choices_.period) choices_.merge->Prepare();
}

void Composed::BucketReady(Replica& replica, const Bucket& bucket, const Event& event) {
  ++announced_;
  choices_.inner->BucketReady(replica, bucket, event);
}

Event Composed::AfterStep(Replica& replica) {
  if (announced_ < replica.buckets.size()) AnnounceRest(replica);
  const Observer& observer = replica.observer;
  observer.Tell(Phase::kReduce, replica.work.step);
  SpanSink* const spans = observer.tracing();
  const double began = spans ? Now() : 0;
  // Alone, and without samples (the last step of an epoch may have few): nothing to follow.
  const bool idle = choices_.anchor && replica.work.shards.empty();
  if (!idle) choices_.inner->Agree(replica, [&] { Update(replica); });
  if (spans) spans->Add(Track::kCompute, SpanKind::kWait, began, Now());
  if (choices_.handout) choices_.handout->Done();
  if (choices_.anchor) CountForAnchor(replica);
  if (choices_.centre) {
    open_.insert(open_.end(), replica.work.leases.begin(), replica.work.leases.end());
    if (++since_ >= choices_.period) Meet();
  }
  return replica.queue.Record();
}

// When all meet is a function of the step alone. Votes to stop are of one replica between meetings.
void Composed::CountForAnchor(Replica& r) {
  const Layout& layout = r.layout;
  const Slice summand = r.summands[0];
  if (r.work.shards.empty()) {
    flat::Fill(r.queue, 0, summand.Sub(layout.loss(), Layout::kTallies));
  } else {
    flat::Fill(r.queue, 0, summand.Sub(layout.votes(), 1));
  }
  choices_.anchor->Count(r.work.batch, StepSamples(choices_.plan, r.work.step));
  const int period = choices_.period;
  if (period ? (r.work.step + 1) % period == 0 : r.work.ends_epoch) choices_.anchor->Meet(r);
}

void Composed::Rehearse(Replica& replica) {
  if (announced_ < replica.buckets.size()) AnnounceRest(replica);
  choices_.inner->Agree(replica, [] {});
  replica.queue.Sync();
}

void Composed::Update(Replica& replica) {
  const Observer& observer = replica.observer;
  observer.Tell(Phase::kUpdate, replica.work.step);
  const auto apply = [&] {
    replica.updater.Apply(replica.queue, replica.work.step, replica.summands[0], replica.state);
    observer.Tell(Phase::kReduce, replica.work.step);  // others may have to hear of it
  };
  // Reading a clock twice costs 100 ns, a tiny model's whole update twice that: measure one of
  // some.
  constexpr int kMeasured = 8;
  const bool measured = updates_++ % kMeasured == 0;
  SpanSink* const spans = observer.tracing();
  if (!measured && !spans) return apply();
  const double began = Now();
  apply();
  const double ended = Now();
  if (measured) update_s_ += kMeasured * (ended - began);
  if (spans) spans->Add(Track::kCompute, SpanKind::kUpdate, began, ended);
}

// Nobody announced these (more workers than shards: no backward), and the others wait for them.
void Composed::AnnounceRest(Replica& replica) {
  const Event event = replica.queue.Record();
  for (const Bucket& bucket : replica.buckets.subspan(announced_)) {
    choices_.inner->BucketReady(replica, bucket, event);
  }
}

void Composed::Meet() {
  since_ = 0;
  if (open_.empty()) return;
  choices_.merge->Meet(*replica_, open_);
  open_.clear();
}

void Composed::Stop() {
  if (choices_.centre) choices_.centre->Stop();
  if (choices_.handout) choices_.handout->Stop();
}

void Composed::End(Replica& replica) {
  if (choices_.anchor && !choices_.anchor->agreed()) choices_.anchor->Meet(replica);
  if (choices_.handout) choices_.handout->End();
  if (!choices_.centre) return;
  Meet();
  choices_.centre->Leave();
}

// State and positions of one moment.
void Composed::TakeImage() {
  if (!image_.slice().device) image_ = Buffer(replica_->device, replica_->state.size);
  flat::Copy(replica_->queue, replica_->state, image_);
  replica_->queue.Sync();
  image_taken_ = choices_.handout->taken();
  image_is_new_ = true;
}

void Composed::Snapshot(Replica& replica, Slice into) {
  if (choices_.centre) {
    flat::Put(replica.queue, choices_.centre->Snapshot().data(), into);
  } else if (choices_.anchor) {
    choices_.anchor->Average(replica, into);
  } else if (choices_.handout) {
    if (!image_is_new_) choices_.handout->Quiet([&] { TakeImage(); });
    flat::Copy(replica.queue, image_, into);
  } else {
    flat::Copy(replica.queue, replica.state, into);
  }
  replica.queue.Sync();
}

void Composed::Save(Replica& replica, StateWriter& writer) {
  if (choices_.centre) {
    writer.Int("centre.epochs_told", epochs_told_);
    return choices_.centre->Save(writer);
  }
  if (choices_.anchor) choices_.anchor->Save(replica, writer);
  if (choices_.handout) {
    writer.Int("handout.taken", image_taken_);
    writer.Int("handout.epochs_told", choices_.handout->epochs_told());
  }
  replica.updater.Save(replica.queue, writer);
}

void Composed::Load(Replica& replica, const StateReader& reader) {
  if (choices_.centre) {  // the server loads it, and momentum starts anew
    epochs_told_ = reader.Int("centre.epochs_told");
    return;
  }
  if (choices_.anchor) choices_.anchor->Load(replica, reader);
  if (choices_.handout) {
    choices_.handout->Load(reader.Int("handout.taken"), reader.Int("handout.epochs_told"));
  }
  replica.updater.Load(replica.queue, reader);
}

Traffic Composed::traffic() const {
  Traffic t{.communication_s = choices_.inner->waited_s(), .update_s = update_s_};
  Volume volume = choices_.inner->volume();
  if (choices_.centre) {
    t.communication_s += choices_.centre->waited_s();
    volume = choices_.centre->volume();
  }
  if (choices_.anchor) {
    t.communication_s += choices_.anchor->waited_s();
    volume = choices_.anchor->volume();
  }
  t.hidden_s = std::max(0.0, choices_.inner->busy_s() - choices_.inner->waited_s());
  t.bytes_sent = volume.sent;
  t.bytes_received = volume.received;
  return t;
}

}  // namespace trireme
