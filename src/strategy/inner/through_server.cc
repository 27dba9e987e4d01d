#include "strategy/inner/through_server.h"

#include <algorithm>

#include "flat/arithmetic.h"
#include "strategy/inner/sum_chain.h"
#include "strategy/inner/sum_star.h"
#include "strategy/inner/transfers.h"
#include "strategy/step/tags.h"
#include "transport/collective/broadcast.h"

namespace trireme {

InnerThroughServer::InnerThroughServer(Group& group, const std::vector<int>& shards,
                                       bool deterministic, int summands, const Ways& ways)
    : group_(group), ways_(ways), deterministic_(deterministic), summands_(summands) {
  const bool star = ways.route == Route::kStar;
  if (ways.overlap.broadcast) broadcast_ = std::make_unique<StateBroadcast>(group, star);
  const std::vector<int> sent = SummandsSent(shards);
  if (star) {
    leaving_.reserve(sent.size());
    sum_ = std::make_unique<SumStar>(group, sent);
    return;
  }
  order_ = group.Split(0, is_server() ? group.size() : group.rank());
  // The server keeps what arrives; nothing comes back by the chain.
  const auto turn = [](const Range&, std::span<const float>) { return Ticket(); };
  const auto left = [](const Range&) {};
  sum_ = std::make_unique<SumChain>(*order_, sent, SumChain::Ends{turn, left});
}

InnerThroughServer::~InnerThroughServer() = default;

// By rank of the route: along the chain the server is the last.
std::vector<int> InnerThroughServer::SummandsSent(std::span<const int> shards) const {
  std::vector<int> sent(shards.begin(), shards.end());
  if (!deterministic_) std::fill(sent.begin() + 1, sent.end(), 1);
  if (ways_.route == Route::kChain) std::rotate(sent.begin(), sent.begin() + 1, sent.end());
  return sent;
}

void InnerThroughServer::SetShards(std::span<const int> shards) {
  sum_->SetShards(SummandsSent(shards));
}

int InnerThroughServer::Summands() const { return summands_; }

void InnerThroughServer::Begin(Replica& r) {
  if (!broadcast_) staging_ = Staging(r.device, r.state.size);
  metrics_ = {r.device, Layout::kStepMetrics};
  scale_ = {r.device, UpdateScale::kSize};
  if (ways_.sends == Sends::kDifferences && !is_server()) {
    moved_ = Buffer(r.device, r.state.size);
  }
  sum_->Begin(r);
  if (broadcast_) broadcast_->Begin(r, AgreeOnSegment(group_, r));
}

void InnerThroughServer::BeforeStep(Replica& r) {
  // More workers than shards: what this one adds is nothing.
  const bool adds = !is_server() && sum_->shards() > 0;
  if (r.work.shards.empty() && adds) flat::Fill(r.queue, 0, r.summands[0]);
}

void InnerThroughServer::BucketReady(Replica& r, const Bucket& bucket, const Event& event) {
  if (Listens()) return sum_->BucketReady(bucket, event);
  const bool differences = ways_.sends == Sends::kDifferences;
  // After backward: a difference is known only when the whole gradient is.
  if (&bucket != &r.buckets.back()) return;
  if (differences && !is_server()) MakeDifference(r);
  const Event made = r.queue.Record();
  for (const Bucket& b : r.buckets) sum_->BucketReady(b, made);
}

void InnerThroughServer::MakeDifference(Replica& r) {
  AwaitState(r);  // nobody has read it where there was no shard
  const size_t weights = r.layout.weights;
  const Slice gradient = r.summands[0].Sub(0, weights);
  flat::Copy(r.queue, r.state, moved_);
  r.updater.Apply(r.queue, r.work.step, r.summands[0], moved_);
  // What is not finite makes the difference so: nobody takes this step.
  flat::Blend(r.queue, 1, moved_.slice().Sub(0, weights), 0, gradient);
  flat::Blend(r.queue, -1, r.state.Sub(0, weights), 1, gradient);
}

void InnerThroughServer::Agree(Replica& r, FunctionRef<void()> update) {
  const Event began = r.queue.Mark();  // backward is over
  sum_->Drain();
  r.queue.Wait(sum_->Record());
  waited_.Add(began, r.queue.Mark());
  AwaitState(r);  // the last one is with all
  if (is_server()) {
    if (ways_.sends == Sends::kDifferences) {
      r.updater.ApplyMove(r.queue, r.summands[0], r.state);
    } else {
      update();
    }
  }
  ShareState(r);
}

// The server's state, what the summand says about the step besides gradients, the loss scale.
void InnerThroughServer::ShareState(Replica& r) {
  const Event began = r.queue.Mark();  // the update is done
  const Slice tail = r.summands[0].Sub(r.layout.loss(), Layout::kStepMetrics);
  if (is_server()) {
    flat::Get(r.queue, tail, metrics_);
    flat::Get(r.queue, r.updater.scale(), scale_);
    if (!broadcast_) staging_.Get(r.queue, r.state, 0);
  }
  r.queue.Sync();
  if (is_server()) metrics_[Layout::kVotes] += r.vote;  // it has no shard that could
  if (!broadcast_) SendFromServer(std::as_writable_bytes(staging_.Host(r.state, 0)));
  SendFromServer(std::as_writable_bytes(metrics_.values()));
  if (!is_server() && !broadcast_) staging_.Put(r.queue, r.state, 0);
  flat::Put(r.queue, metrics_, tail);
  if (r.updater.scales_loss()) {
    SendFromServer(std::as_writable_bytes(scale_.values()));
    if (!is_server()) flat::Put(r.queue, scale_, r.updater.scale());
  }
  sharing_.Add(began, r.queue.Mark());
  r.queue.Sync();  // the host's copies are used again
  if (broadcast_) broadcast_->Start(r.queue.Record());
}

Event InnerThroughServer::AwaitBucket(Replica&, const Bucket& bucket) {
  return broadcast_ ? broadcast_->Await(bucket) : Event::Fired();
}

void InnerThroughServer::AwaitState(Replica& r) {
  if (!broadcast_) return;
  const Event began = r.queue.Mark();
  r.queue.Wait(broadcast_->AwaitAll());
  waited_.Add(began, r.queue.Mark());
}

void InnerThroughServer::SendFromServer(std::span<std::byte> bytes) {
  if (ways_.route == Route::kChain) return Broadcast(group_, kTagState, kServer, bytes);
  if (!is_server()) return group_.Receive(kServer, kTagState, bytes).Wait();
  Transfers transfers(leaving_);
  for (int r = 1; r < group_.size(); ++r) transfers.Add(group_.Send(r, kTagState, bytes));
  transfers.Wait();
}

}  // namespace trireme
