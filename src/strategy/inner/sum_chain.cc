#include "strategy/inner/sum_chain.h"

#include <algorithm>

#include "flat/arithmetic.h"
#include "strategy/step/tags.h"

namespace trireme {
namespace {

int FirstWithShards(std::span<const int> shards) {
  return int(std::find_if(shards.begin(), shards.end(), [](int n) { return n > 0; }) -
             shards.begin());
}

}  // namespace

SumChain::SumChain(Group& group, const std::vector<int>& shards, Ends ends)
    : group_(group), last_(group.rank() + 1 == group.size()), ends_(std::move(ends)) {
  SetShards(shards);
}

void SumChain::SetShards(std::span<const int> shards) {
  shards_ = shards[size_t(group_.rank())];
  first_ = FirstWithShards(shards);
}

SumChain::~SumChain() {
  comm_thread_.reset();
  DrainQuietly(queue_.get());
}

void SumChain::Begin(Replica& r) {
  summands_.assign(r.summands.begin(), r.summands.end());
  queue_ = r.device.NewQueue();
  segment_ = AgreeOnSegment(group_, r);
  parts_.reserve(r.summands.size());
  arrived_ = Buffer(r.device, segment_);
  arriving_ = Staging(r.device, segment_);
  sum_ = Staging(r.device, r.layout.summand);
  comm_thread_ = std::make_unique<CommThread<Task>>(
      [this](Task& task) { return Forward(task); },
      [this](std::string_view reason) { group_.Abort(reason); }, r.observer.spans);
}

void SumChain::BucketReady(const Bucket& bucket, const Event& event) {
  comm_thread_->Push({bucket.range, event});
}

void SumChain::Drain() { comm_thread_->Drain(); }

CommWork SumChain::Forward(const Task& task) {
  queue_->Wait(task.event);
  const Event began = queue_->Mark();
  Ticket leaving;
  Range left;  // the segment of `leaving`
  const auto wait = [&] {
    leaving.Wait();
    if (!last_ && left.size > 0) ends_.left(left);
  };
  for (size_t at = 0; at < task.range.size; at += segment_) {
    const Range segment{task.range.begin + at, std::min(segment_, task.range.size - at)};
    Ticket next = SendOn(segment, AddOwn(segment));
    wait();
    leaving = std::move(next);
    left = segment;
  }
  wait();
  return {began, queue_->Mark()};
}

// summands[0] = (what came from the rank before + own shards, in order); the same on the host.
std::span<const float> SumChain::AddOwn(const Range& segment) {
  Queue& queue = *queue_;
  const Slice sum = summands_[0].Sub(segment.begin, segment.size);
  parts_.clear();
  for (int s = 0; s < shards_; ++s) parts_.push_back(summands_[s].Sub(segment.begin, segment.size));
  if (group_.rank() <= first_) {
    if (shards_ > 1) flat::SumInOrder(queue, sum, std::span<const Slice>(parts_).subspan(1), sum);
  } else {
    const Slice arrived = arrived_.slice().Sub(0, segment.size);
    const std::span<float> host = arriving_.Host(arrived, 0);
    group_.Receive(group_.rank() - 1, kTagSumForward, std::as_writable_bytes(host)).Wait();
    arriving_.Put(queue, arrived, 0);
    if (shards_ > 0) flat::SumInOrder(queue, arrived, parts_, sum);
    if (shards_ == 0) flat::Copy(queue, arrived, sum);
  }
  const std::span<float> host = sum_.Get(queue, sum, segment.begin);
  queue.Sync();
  return host;
}

Ticket SumChain::SendOn(const Range& segment, std::span<const float> sum) {
  if (last_) return ends_.turn(segment, sum);
  if (group_.rank() < first_) return {};  // nothing to add up yet
  return group_.Send(group_.rank() + 1, kTagSumForward, std::as_bytes(sum));
}

}  // namespace trireme
