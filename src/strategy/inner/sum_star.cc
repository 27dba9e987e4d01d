#include "strategy/inner/sum_star.h"

#include <algorithm>
#include <numeric>

#include "flat/arithmetic.h"
#include "strategy/inner/transfers.h"
#include "strategy/step/tags.h"

namespace trireme {

SumStar::SumStar(Group& group, const std::vector<int>& shards) : group_(group), shards_(shards) {}

SumStar::~SumStar() {
  comm_thread_.reset();
  DrainQuietly(queue_.get());
}

void SumStar::Begin(Replica& r) {
  summands_.assign(r.summands.begin(), r.summands.end());
  queue_ = r.device.NewQueue();
  segment_ = AgreeOnSegment(group_, r);
  const int all = std::accumulate(shards_.begin(), shards_.end(), 0);
  const size_t count = adds() ? size_t(all) : summands_.size();
  if (adds()) arrived_ = Buffer(r.device, count * segment_);
  staging_ = Staging(r.device, count * segment_);
  parts_.reserve(count);
  tickets_.reserve(count);
  comm_thread_ = std::make_unique<CommThread<Task>>(
      [this](Task& task) { return Forward(task); },
      [this](std::string_view reason) { group_.Abort(reason); }, r.observer.spans);
}

void SumStar::BucketReady(const Bucket& bucket, const Event& event) {
  comm_thread_->Push({bucket.range, event});
}

void SumStar::Drain() { comm_thread_->Drain(); }

CommWork SumStar::Forward(const Task& task) {
  queue_->Wait(task.event);
  const Event began = queue_->Mark();
  for (size_t at = 0; at < task.range.size; at += segment_) {
    const Range segment{task.range.begin + at, std::min(segment_, task.range.size - at)};
    if (adds()) {
      AddArrived(segment);
    } else {
      SendOwn(segment);
    }
  }
  return {began, queue_->Mark()};
}

void SumStar::SendOwn(const Range& segment) {
  Transfers transfers(tickets_);
  const auto own = [&](size_t s) { return summands_[s].Sub(segment.begin, segment.size); };
  const size_t count = size_t(shards());
  for (size_t s = 0; s < count; ++s) staging_.Get(*queue_, own(s), s * segment_);
  queue_->Sync();
  for (size_t s = 0; s < count; ++s) {
    const std::span<const float> host = staging_.Host(own(s), s * segment_);
    transfers.Add(group_.Send(kServer, kTagSumForward, std::as_bytes(host)));
  }
  transfers.Wait();
}

// All are under way at once; they are added in order.
void SumStar::AddArrived(const Range& segment) {
  Transfers transfers(tickets_);
  parts_.clear();
  for (int rank = 0; rank < group_.size(); ++rank) {
    for (int s = 0; s < shards_[size_t(rank)]; ++s) {
      const size_t at = parts_.size() * segment_;
      parts_.push_back(arrived_.slice().Sub(at, segment.size));
      const std::span<float> host = staging_.Host(parts_.back(), at);
      transfers.Add(group_.Receive(rank, kTagSumForward, std::as_writable_bytes(host)));
    }
  }
  transfers.Wait();
  for (size_t i = 0; i < parts_.size(); ++i) staging_.Put(*queue_, parts_[i], i * segment_);
  const Slice sum = summands_[0].Sub(segment.begin, segment.size);
  if (parts_.size() == 1) flat::Copy(*queue_, parts_[0], sum);
  if (parts_.size() > 1) {
    flat::SumInOrder(*queue_, parts_[0], std::span<const Slice>(parts_).subspan(1), sum);
  }
  queue_->Sync();  // the host's copies are used again
}

}  // namespace trireme
