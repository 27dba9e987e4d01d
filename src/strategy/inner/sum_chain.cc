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
  const size_t segment = std::min(kSumSegment, r.layout.summand);
  parts_.reserve(r.summands.size());
  arrived_ = Buffer(r.device, segment);
  staged_ = !r.device.host_visible();
  if (staged_) {
    host_arrived_.resize(segment);
    host_sum_.resize(r.layout.summand);
  }
  comm_thread_ = std::make_unique<CommThread<Task>>(
      [this](Task& task) { Forward(task); },
      [this](std::string_view reason) { group_.Abort(reason); }, r.observer.spans);
}

void SumChain::BucketReady(const Bucket& bucket, const Event& event) {
  comm_thread_->Push({bucket.range, event});
}

void SumChain::Drain() { comm_thread_->Drain(); }

void SumChain::Forward(const Task& task) {
  if (staged_) {
    queue_->Wait(task.event);
  } else {
    task.event.Wait();
  }
  Ticket leaving;
  Range left;  // the segment of `leaving`
  const auto wait = [&] {
    leaving.Wait();
    if (!last_ && left.size > 0) ends_.left(left);
  };
  for (size_t at = 0; at < task.range.size; at += kSumSegment) {
    const Range segment{task.range.begin + at, std::min(kSumSegment, task.range.size - at)};
    Ticket next = SendOn(segment, AddOwn(segment));
    wait();
    leaving = std::move(next);
    left = segment;
  }
  wait();
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
    const std::span<float> host =
        staged_ ? std::span<float>(host_arrived_).first(segment.size) : arrived.host();
    group_.Receive(group_.rank() - 1, kTagSumForward, std::as_writable_bytes(host)).Wait();
    if (staged_) flat::Put(queue, host.data(), arrived);
    if (shards_ > 0) flat::SumInOrder(queue, arrived, parts_, sum);
    if (shards_ == 0) flat::Copy(queue, arrived, sum);
  }
  if (!staged_) return sum.host();
  const std::span<float> host = std::span(host_sum_).subspan(segment.begin, segment.size);
  flat::Get(queue, sum, host);
  queue.Sync();
  return host;
}

Ticket SumChain::SendOn(const Range& segment, std::span<const float> sum) {
  if (last_) return ends_.turn(segment, sum);
  if (group_.rank() < first_) return {};  // nothing to add up yet
  return group_.Send(group_.rank() + 1, kTagSumForward, std::as_bytes(sum));
}

}  // namespace trireme
