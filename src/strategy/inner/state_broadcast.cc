#include "strategy/inner/state_broadcast.h"

#include <algorithm>
#include <numeric>

#include "strategy/inner/transfers.h"
#include "strategy/step/tags.h"

namespace trireme {
namespace {

constexpr int kServer = 0;

int SourceOf(const Group& group, bool star) {
  if (group.rank() == kServer) return -1;
  return star ? kServer : group.rank() - 1;
}

std::vector<int> TargetsOf(const Group& group, bool star) {
  const int rank = group.rank(), last = group.size() - 1;
  if (rank == last || (star && rank != kServer)) return {};
  std::vector<int> targets(size_t(star ? last : 1));
  std::iota(targets.begin(), targets.end(), rank + 1);
  return targets;
}

}  // namespace

StateBroadcast::StateBroadcast(Group& group, bool star)
    : group_(group), from_(SourceOf(group, star)), to_(TargetsOf(group, star)) {}

StateBroadcast::~StateBroadcast() {
  comm_thread_.reset();
  DrainQuietly(queue_.get());
}

void StateBroadcast::Begin(Replica& r, size_t segment) {
  state_ = r.state;
  staging_ = Staging(r.device, state_.size);
  queue_ = r.device.NewQueue();
  arrived_.assign(r.buckets.size(), Event::Fired());  // what a run begins with is there
  for (auto bucket = r.buckets.rbegin(); bucket != r.buckets.rend(); ++bucket) {
    const size_t end = std::min(bucket->range.end(), state_.size);  // metrics are no state
    for (size_t at = bucket->range.begin; at < end; at += segment) {
      segments_.push_back({{at, std::min(segment, end - at)}});
    }
    if (end > bucket->range.begin) segments_.back().completes = bucket->index;
  }
  arriving_.reserve(segments_.size());
  leaving_.reserve(segments_.size() * to_.size());
  const auto fail = [this](std::string_view reason) {
    {
      const std::lock_guard lock(mutex_);
      failed_ = true;
    }
    changed_.notify_all();
    group_.Abort(reason);
  };
  comm_thread_ = std::make_unique<CommThread<Event>>([this](Event& ready) { return Run(ready); },
                                                     fail, r.observer.spans, Track::kReturn);
}

void StateBroadcast::Start(const Event& ready) {
  {
    const std::lock_guard lock(mutex_);
    complete_ = int(arrived_.size());
  }
  comm_thread_->Push(ready);
}

Event StateBroadcast::Await(const Bucket& bucket) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failed_ || complete_ <= bucket.index; });
    if (!failed_) return arrived_[size_t(bucket.index)];
  }
  return AwaitAll();  // throws what was thrown there
}

Event StateBroadcast::AwaitAll() {
  comm_thread_->Drain();
  const std::lock_guard lock(mutex_);
  return arrived_.front();  // the last one
}

void StateBroadcast::Publish(int bucket) {
  const Event event = queue_->Record();
  {
    const std::lock_guard lock(mutex_);
    while (complete_ > bucket) arrived_[size_t(--complete_)] = event;
  }
  changed_.notify_all();
}

CommWork StateBroadcast::Run(const Event& ready) {
  queue_->Wait(ready);
  const Event began = queue_->Mark();
  queue_->Sync();  // and the last state has left the staging
  const auto host = [&](const Range& range) {
    return staging_.Host(state_.Sub(range.begin, range.size), range.begin);
  };
  Transfers arriving(arriving_), leaving(leaving_);
  for (size_t i = 0; from_ >= 0 && i < segments_.size(); ++i) {
    arriving.Add(
        group_.Receive(from_, kTagState, std::as_writable_bytes(host(segments_[i].range))));
  }
  for (size_t i = 0; i < segments_.size(); ++i) {
    const Range& range = segments_[i].range;
    const Slice part = state_.Sub(range.begin, range.size);
    if (from_ >= 0) {
      arriving_[i].Wait();
    } else {
      staging_.Get(*queue_, part, range.begin);
      queue_->Sync();
    }
    const std::span<const float> now = host(range);
    for (const int rank : to_) {
      leaving.Add(group_.Send(rank, kTagState, std::as_bytes(now)));
    }
    if (from_ >= 0) staging_.Put(*queue_, part, range.begin);
    if (segments_[i].completes >= 0) Publish(segments_[i].completes);
  }
  leaving.Wait();
  return {began, queue_->Mark()};
}

}  // namespace trireme
