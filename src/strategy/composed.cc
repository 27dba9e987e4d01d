#include "strategy/composed.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
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
  if (choices_.team) {
    return choices_.team->leads() ? Lead(NextLease(work), work) : Follow(work);
  }
  if (choices_.centre) return NextLease(work);
  if (choices_.handout) {
    image_is_new_ = false;
    return choices_.handout->Next(work, [&] { TakeImage(); });
  }
  if (step >= choices_.plan.steps) return Turn::kEnd;
  if (choices_.anchor) {
    LocalWorkOf(choices_.plan, step, choices_.worker, choices_.workers, choices_.members, work);
  } else {
    WorkOf(choices_.plan, step, choices_.worker, choices_.workers, work);
  }
  return Turn::kStep;
}

Turn Composed::NextLease(Work& work) {
  for (;;) {
    Lease lease;
    switch (choices_.centre->Claim(!open_.empty(), lease)) {
      case Client::Answer::kLease:
        WorkOn(lease, work);
        return Turn::kStep;
      case Client::Answer::kDrain:
        Meet();
        break;
      case Client::Answer::kVoid:
        open_.clear();
        head_ = {};
        since_ = 0;
        choices_.merge->Reload(*replica_);
        forgets_ = true;
        break;
      case Client::Answer::kEnd:
        return Turn::kEnd;
    }
  }
}

// Before the step newer weights are taken, so that all of the team have them.
Turn Composed::Lead(Turn turn, Work& work) {
  LeaseTeam::Order order{.turn = int64_t(turn)};
  if (turn == Turn::kStep) {
    choices_.merge->BeforeStep(*replica_, MeetsAfter(since_ + 1));
    const Shard& shard = work.shards[0];
    order.step = work.step;
    order.epoch = work.epoch;
    order.begin = shard.begin;
    order.end = shard.end;
    order.lease = work.leases[0];
  }
  order.moved = choices_.merge->Moved();
  order.forgets = std::exchange(forgets_, false);
  choices_.team->Tell(*replica_, order);
  if (turn == Turn::kStep) choices_.team->TakePart(order, work);
  return turn;
}

Turn Composed::Follow(Work& work) {
  const LeaseTeam::Order order = choices_.team->Hear(*replica_);
  if (Turn(order.turn) == Turn::kStep) choices_.team->TakePart(order, work);
  return Turn(order.turn);
}

void Composed::WorkOn(const Lease& lease, Work& work) {
  const Plan& plan = choices_.plan;
  if (choices_.clocked) {
    const int64_t step = StepOf(plan, lease.epoch, lease.begin);
    WorkOf(plan, step, 0, 1, work);
    work.ends_epoch = false;
    std::erase_if(work.shards, [&](const Shard& s) { return s.begin != lease.begin || !s.size(); });
    if (work.shards.size() != 1 || work.shards[0].end != lease.end) {
      throw Error("the server leases positions {} to {} of step {}, which are no shard of it",
                  lease.begin, lease.end, step);
    }
  } else {
    LeasedWork(plan, lease.epoch, lease.begin, lease.end, work);
  }
  work.leases.assign(1, lease.id);
  if (choices_.own_samples) TakeOwn(work);
}

// As many of the own samples, in their own order.
void Composed::TakeOwn(Work& work) {
  if (own_position_ + work.batch > choices_.own_samples) {
    ++own_epoch_;
    own_position_ = 0;
  }
  work.epoch = own_epoch_;
  work.shards[0].begin = own_position_;
  work.shards[0].end = own_position_ += work.batch;
}

void Composed::BeforeStep(Replica& replica) {
  announced_ = 0;
  choices_.inner->BeforeStep(replica);
  if (choices_.merge && !choices_.team) {
    choices_.merge->BeforeStep(replica, MeetsAfter(since_ + 1));
  }
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
  // This worker or group has no samples (the last step of an epoch may have few): nothing to
  // follow.
  const bool idle = choices_.anchor && replica.work.batch == 0;
  choices_.inner->Agree(replica, [&] {
    if (!idle) Update(replica);
  });
  if (spans) spans->Add(Track::kCompute, SpanKind::kWait, began, Now());
  if (choices_.handout) choices_.handout->Done();
  if (choices_.anchor) CountForAnchor(replica);
  if (choices_.centre) {
    open_.insert(open_.end(), replica.work.leases.begin(), replica.work.leases.end());
    CountLoss(replica);
    choices_.merge->AfterStep(replica);
    if (MeetsAfter(++since_)) Meet();
  }
  return replica.queue.Record();
}

// When all meet is a function of the step alone. Votes to stop are of one replica between meetings.
void Composed::CountForAnchor(Replica& r) {
  const Layout& layout = r.layout;
  const Slice summand = r.summands[0];
  if (r.work.batch == 0) {
    flat::Fill(r.queue, 0, summand.Sub(layout.loss(), Layout::kTallies));
  } else {
    flat::Fill(r.queue, 0, summand.Sub(layout.votes(), 1));
  }
  int64_t own = 0;
  for (const Shard& shard : r.work.shards) own += shard.size();
  choices_.anchor->Count(own, StepSamples(choices_.plan, r.work.step));
  const int period = choices_.period;
  if (period ? (r.work.step + 1) % period == 0 : r.work.ends_epoch) choices_.anchor->Meet(r);
}

// For the push that names this step's leases.
void Composed::CountLoss(Replica& r) {
  std::array<float, Layout::kTallies> tallies;
  flat::Get(r.queue, r.summands[0].Sub(r.layout.loss(), Layout::kTallies), tallies);
  r.queue.Sync();
  head_.loss_sum += double(tallies[0]) * double(r.work.batch);
  head_.correct += double(tallies[1]);
}

void Composed::Rehearse(Replica& replica) {
  if (announced_ < replica.buckets.size()) AnnounceRest(replica);
  choices_.inner->Agree(replica, [] {});
  replica.queue.Sync();
}

void Composed::Update(Replica& replica) {
  if (!Updates()) return;  // the centre does
  const Observer& observer = replica.observer;
  observer.Tell(Phase::kUpdate, replica.work.step);
  const auto apply = [&] {
    Gradient sum(replica.summands[0], replica.unwritten);
    sum.known_finite = choices_.inner->SumIsFinite();
    replica.updater.Apply(replica.queue, replica.work.step, sum, replica.state);
    observer.Tell(Phase::kReduce, replica.work.step);  // others may have to hear of it
  };
  // Reading a clock twice costs 100 ns, a tiny model's whole update twice that: of short ones one
  // of some is measured.
  constexpr unsigned kSome = 8;
  constexpr double kShort_s = 20e-6;
  const unsigned counts = update_is_short_ ? kSome : 1;
  const bool measured = updates_++ % counts == 0;
  SpanSink* const spans = observer.tracing();
  if (!measured && !spans) return apply();
  const double began = Now();
  apply();
  const double ended = Now();
  if (measured) {
    update_s_ += counts * (ended - began);
    update_is_short_ = ended - began < kShort_s;
  }
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
  choices_.merge->Meet(*replica_, head_, open_);
  open_.clear();
  head_ = {};
}

void Composed::Stop() {
  if (choices_.centre) choices_.centre->Stop();
  if (choices_.handout) choices_.handout->Stop();
}

void Composed::End(Replica& replica) {
  if (choices_.anchor && !choices_.anchor->agreed()) choices_.anchor->Meet(replica);
  if (choices_.handout) choices_.handout->End();
  if (choices_.centre) Meet();
}

// State and positions of one moment.
void Composed::TakeImage() {
  if (!image_.slice().device) image_ = Buffer(replica_->device, replica_->state.size);
  flat::Copy(replica_->queue, replica_->state, image_);
  replica_->queue.Sync();
  image_taken_ = choices_.handout->taken();
  image_workers_ = choices_.inner->workers();
  image_is_new_ = true;
}

std::vector<ClientNumbers> Composed::workers() const {
  return image_is_new_ ? image_workers_ : choices_.inner->workers();
}

void Composed::Snapshot(Replica& replica, Slice into) {
  if (choices_.centre) {
    const Client::Centre centre = choices_.centre->FetchNow(into.size);
    flat::Put(replica.queue, centre.state, into);
    replica.queue.Sync();  // before it is given up
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

// With a centre its server keeps the run, and momentum starts anew.
void Composed::Save(Replica& replica, StateWriter& writer) {
  if (!OwnsState()) return;
  if (choices_.anchor) choices_.anchor->Save(replica, writer);
  if (choices_.handout) {
    writer.Int("handout.taken", image_taken_);
    writer.Int("handout.epochs_told", choices_.handout->epochs_told());
  }
  replica.updater.Save(replica.queue, writer);
}

void Composed::Load(Replica& replica, const StateReader& reader) {
  if (!OwnsState()) return;
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
