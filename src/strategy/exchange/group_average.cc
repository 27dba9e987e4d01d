#include "strategy/exchange/group_average.h"

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "flat/arithmetic.h"
#include "flat/staging.h"
#include "strategy/step/tags.h"
#include "transport/collective/all_reduce.h"
#include "transport/collective/broadcast.h"

namespace trireme {
namespace {

constexpr const char* kVelocity = "anchor.velocity";

}  // namespace

void GroupAverage::Begin(Replica& r) {
  anchor_ = Buffer(r.device, r.state.size);
  moves_ = Buffer(r.device, r.state.size);
  flat::Copy(r.queue, r.state, anchor_);
  if (rates_.momentum != 0 && !velocity_.slice().device) {
    velocity_ = Buffer(r.device, r.layout.weights);
  }
  host_ = {r.device, r.state.size + 1};
  scratch_.resize(kAllReduceScratch);
}

// Votes to stop are of one replica, or group, between meetings.
void GroupAverage::AfterStep(Replica& r) {
  const Slice summand = r.summands[0];
  if (r.work.batch == 0) {
    flat::Fill(r.queue, 0, summand.Sub(r.layout.loss(), Layout::kStepMetrics));
  } else {
    flat::Fill(r.queue, 0, summand.Sub(r.layout.votes(), 1));
  }
  for (const Shard& shard : r.work.shards) own_ += shard.size();
  all_ += StepSamples(plan_, r.work.step);
  if (period_ ? (r.work.step + 1) % period_ == 0 : r.work.ends_epoch) Meet(r);
}

void GroupAverage::End(Replica& r) {
  if (!Agreed()) Meet(r);
}

// moves = sum over replicas of share * (state - anchor): mean - anchor.
float GroupAverage::SumMoves(Replica& r, float vote) {
  const float share = float(double(own_) / double(all_));
  flat::Copy(r.queue, r.state, moves_);
  flat::Blend(r.queue, -share, anchor_, share, moves_);
  const std::span<float> moves = host_.values().first(r.state.size);
  float& votes = host_.values().back();
  flat::Get(r.queue, moves_, moves);
  r.queue.Sync();
  votes = vote;
  const Stopwatch watch;
  AllReduceSum(group_, kTagMeeting, host_.values(), scratch_);
  waited_s_ += watch.seconds();
  flat::Put(r.queue, moves, moves_);
  r.queue.Sync();
  return votes;
}

void GroupAverage::Meet(Replica& r) {
  const float votes = SumMoves(r, r.vote);
  const size_t weights = r.layout.weights, statistics = r.state.size - weights;
  const Slice anchor = anchor_, moves = moves_;
  Slice way = moves.Sub(0, weights);
  if (rates_.momentum != 0) {
    flat::Blend(r.queue, 1, way, rates_.momentum, velocity_);
    way = velocity_;
  }
  flat::Blend(r.queue, rates_.rate, way, 1, anchor.Sub(0, weights));
  if (statistics) {
    flat::Add(r.queue, moves.Sub(weights, statistics), anchor.Sub(weights, statistics));
  }
  flat::Copy(r.queue, anchor_, r.state);
  r.updater.Reset(r.queue);
  AgreeOnScale(r);
  flat::Fill(r.queue, votes, r.summands[0].Sub(r.layout.votes(), 1));
  own_ = all_ = 0;
}

// Between meetings each has its own loss scale: the smallest is good for all.
void GroupAverage::AgreeOnScale(Replica& r) {
  if (!r.updater.scales_loss()) return;
  Updater::ScaleOnHost scale = r.updater.GetScale(r.queue);
  for (const Updater::ScaleOnHost& other : AllGather(group_, kTagMeeting, scale)) {
    for (const size_t i : {UpdateScale::kLoss, UpdateScale::kFinite}) {
      scale[i] = std::min(scale[i], other[i]);
    }
  }
  flat::PutNow(r.queue, scale, r.updater.scale());
}

void GroupAverage::Snapshot(Replica& r, Slice into) {
  flat::Copy(r.queue, anchor_, into);
  if (Agreed()) return;
  SumMoves(r, 0);
  flat::Add(r.queue, moves_, into);
}

void GroupAverage::Save(Replica& r, StateWriter& writer) {
  if (rates_.momentum == 0) return;
  std::vector<float> host(r.layout.weights);
  flat::GetNow(r.queue, velocity_, host);
  writer.Tensor(kVelocity, std::array{int64_t(host.size())}, host);
}

void GroupAverage::Load(Replica& r, const StateReader& reader) {
  if (rates_.momentum == 0) return;
  velocity_ = Buffer(r.device, r.layout.weights);
  if (!reader.Has(kVelocity)) return;  // the run had none so far
  std::vector<float> host(r.layout.weights);
  reader.Tensor(kVelocity, std::array{int64_t(host.size())}, host);
  flat::PutNow(r.queue, host, velocity_);
}

}  // namespace trireme
