#include "strategy/inner_fold.h"

#include <algorithm>

#include "base/clock.h"
#include "flat/arithmetic.h"
#include "strategy/tags.h"

namespace trireme {
namespace {

constexpr size_t kSegment =
    1 << 16;  // floats: with the summands of a few shards still in the cache

int FirstWithShards(const std::vector<int>& shards) {
  return int(std::find_if(shards.begin(), shards.end(), [](int n) { return n > 0; }) -
             shards.begin());
}

}  // namespace

InnerFold::InnerFold(Group& group, std::vector<int> shards)
    : group_(group),
      shards_(shards[group.rank()]),
      first_(FirstWithShards(shards)),
      last_(group.rank() + 1 == group.size()) {}

InnerFold::~InnerFold() {
  forward_.reset();  // feeds back_
  back_.reset();
  DrainQuietly(forward_queue_.get());
  DrainQuietly(back_queue_.get());
}

int InnerFold::Summands() const { return std::max(1, shards_); }

void InnerFold::Begin(Replica& r) {
  summands_.assign(r.summands.begin(), r.summands.end());
  forward_queue_ = r.device.NewQueue();
  back_queue_ = r.device.NewQueue();
  landed_ = back_queue_->Record();
  const size_t segment = std::min(kSegment, r.layout.summand);
  parts_.reserve(r.summands.size());
  arrived_ = Buffer(r.device, segment);
  staged_ = !r.device.host_visible();
  if (staged_) {
    host_arrived_.resize(segment);
    host_forward_.resize(r.layout.summand);
    host_back_.resize(r.layout.summand);
  }
  const auto fail = [this](std::string_view reason) { group_.Abort(reason); };
  back_ = std::make_unique<Courier<Range>>([this](Range& range) { Back(range); }, fail);
  forward_ = std::make_unique<Courier<Job>>([this](Job& job) { Forward(job); }, fail);
}

void InnerFold::BucketReady(Replica&, const Bucket& bucket, const Event& event) {
  forward_->Push({bucket.range, event});
}

void InnerFold::Reduce(Replica& r) {
  const Stopwatch watch;
  forward_->Drain();
  back_->Drain();
  waited_s_ += watch.seconds();
  landed_ = back_queue_->Record();
  r.queue.Wait(forward_queue_->Record());
  r.queue.Wait(landed_);
}

void InnerFold::Forward(const Job& job) {
  if (staged_) {
    forward_queue_->Wait(job.event);
  } else {
    job.event.Wait();
  }
  Ticket leaving;
  Range left;  // the segment of `leaving`
  for (size_t at = 0; at < job.range.size; at += kSegment) {
    const Range segment{job.range.begin + at, std::min(kSegment, job.range.size - at)};
    AddOwn(segment);
    Ticket next = SendOn(segment);
    // The result may come back into a segment only once its sum has left.
    leaving.Wait();
    if (!last_ && left.size > 0) back_->Push(left);
    leaving = std::move(next);
    left = segment;
  }
  leaving.Wait();
  if (!last_ && left.size > 0) back_->Push(left);
}

// summands[0] = (what came from the rank before + own shards, in order)
void InnerFold::AddOwn(const Range& segment) {
  Queue& queue = *forward_queue_;
  const Slice sum = summands_[0].Sub(segment.begin, segment.size);
  parts_.clear();
  for (int s = 0; s < shards_; ++s) parts_.push_back(summands_[s].Sub(segment.begin, segment.size));
  if (group_.rank() <= first_) {
    if (shards_ > 1) flat::Fold(queue, sum, std::span<const Slice>(parts_).subspan(1), sum);
  } else {
    const Slice arrived = arrived_.slice().Sub(0, segment.size);
    const std::span<float> host =
        staged_ ? std::span<float>(host_arrived_).first(segment.size) : arrived.host();
    group_.Receive(group_.rank() - 1, kTagFoldForward, std::as_writable_bytes(host)).Wait();
    if (staged_) flat::Put(queue, host.data(), arrived);
    if (shards_ > 0) flat::Fold(queue, arrived, parts_, sum);
    if (shards_ == 0) flat::Copy(queue, arrived, sum);
  }
  if (staged_) {
    flat::Get(queue, sum, host_forward_.data() + segment.begin);
    queue.Sync();
  }
}

// The sum goes on to the next rank; from the last one it turns back.
Ticket InnerFold::SendOn(const Range& segment) {
  const int rank = group_.rank();
  const std::span<const float> sum =
      staged_ ? std::span<const float>(host_forward_).subspan(segment.begin, segment.size)
              : summands_[0].Sub(segment.begin, segment.size).host();
  if (last_) return group_.Send(rank - 1, kTagFoldBack, std::as_bytes(sum));
  if (rank < first_) return {};  // nothing to add up yet
  return group_.Send(rank + 1, kTagFoldForward, std::as_bytes(sum));
}

void InnerFold::Back(const Range& segment) {
  const Slice sum = summands_[0].Sub(segment.begin, segment.size);
  std::span<float> host;
  if (staged_) {
    landed_.Wait();
    host = std::span<float>(host_back_).subspan(segment.begin, segment.size);
  } else {
    host = sum.host();
  }
  const int rank = group_.rank();
  group_.Receive(rank + 1, kTagFoldBack, std::as_writable_bytes(host)).Wait();
  if (staged_) flat::Put(*back_queue_, host.data(), sum);
  if (rank > 0)
    group_.Send(rank - 1, kTagFoldBack, std::as_bytes(std::span<const float>(host))).Wait();
}

}  // namespace trireme
