#include "strategy/check/toy_engine.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "flat/arithmetic.h"
#include "flat/cpu/host.h"
#include "flat/staging.h"

namespace trireme::toy {
namespace {

size_t Aligned(size_t n) {
  return (n + Layout::kAlignment - 1) / Layout::kAlignment * Layout::kAlignment;
}

void OverflowAsHalf(std::span<float> gradients) {
  for (float& x : gradients) {
    if (std::fabs(x) > 65504) x = std::copysign(std::numeric_limits<float>::infinity(), x);
  }
}

}  // namespace

float Target(int64_t epoch, int64_t position, size_t weight) {
  const uint64_t sample = uint64_t(epoch) * 1'000'003 + uint64_t(position);
  return float(1 + weight % 3) +
         float(Mix(sample * 0x9e3779b97f4a7c15u + weight) >> 40) * 0x1p-24f - 0.5f;
}

Model::Model(size_t weights, size_t bucket) {
  const size_t half = Aligned(weights / 2);
  layout.parameters = {{0, half}, {half, weights - weights / 2}};
  layout.decays = {true, false};
  layout.weights = half + Aligned(weights - weights / 2);
  layout.statistics = {{layout.weights, 1}};
  layout.state = layout.weights + Layout::kAlignment;
  layout.summand = layout.state + Layout::kAlignment;
  for (size_t at = 0; at < layout.weights; at += bucket) {
    buckets.push_back({int(buckets.size()), {at, std::min(bucket, layout.weights - at)}});
  }
  buckets.push_back({int(buckets.size()), layout.tail()});
  initial.assign(layout.state, 0);
  const Random random(3);
  for (size_t i = 0; i < layout.weights; ++i) initial[i] = float(random.Normal(i));
}

std::unique_ptr<Device> Host() { return std::make_unique<HostDevice>(); }

Worker::Worker(const Model& model, const OptimizerOptions& optimizer, const Plan& plan,
               Device& device, Strategy& strategy)
    : model_(model),
      strategy_(strategy),
      queue_(device.NewQueue()),
      schedule_(optimizer, plan.steps_per_epoch(), plan.steps, plan.batch),
      updater_(optimizer, schedule_, model.layout, device),
      replica_{.device = device,
               .queue = *queue_,
               .state = strategy.Place(Role::kState, model.layout.state, device),
               .layout = model.layout,
               .buckets = model.buckets,
               .updater = updater_} {
  for (int i = 0; i < strategy.Summands(); ++i) {
    summands_.push_back(strategy.Place(Role::kSummand, model.layout.summand, device));
  }
  replica_.summands = summands_;
  weights_ = {device, model.layout.state};
  host_ = {device, model.layout.summand * std::max<size_t>(1, summands_.size())};
}

Worker::~Worker() { queue_->Sync(); }

void Worker::Start(std::span<const float> state, int64_t step, const StateReader* resume) {
  step_ = step;
  if (!strategy_.SharesState() || strategy_.Records()) {
    flat::PutNow(*queue_, state, replica_.state);
  }
  queue_->Sync();
  if (resume) strategy_.Load(replica_, *resume);
  strategy_.Begin(replica_);
}

Turn Worker::Step() {
  const Turn turn = strategy_.Next(step_, replica_.work);
  if (turn != Turn::kStep) return turn;
  if (before_shards) before_shards(replica_.work);
  strategy_.BeforeStep(replica_);
  if (!replica_.work.shards.empty()) ReadWeights();
  const std::vector<Shard>& shards = replica_.work.shards;
  for (size_t i = 0; i < shards.size(); ++i) {
    const bool apart = summands_.size() > 1;
    RunShard(shards[i], apart ? i : 0, !apart && i > 0, i + 1 == shards.size());
  }
  queue_->Wait(strategy_.AfterStep(replica_));
  ++step_;
  for (const Shard& shard : replica_.work.shards) epoch_samples_ += shard.size();
  if (replica_.work.ends_epoch) {
    if (epoch_seconds) strategy_.EndEpoch(epoch_seconds(epoch_samples_));
    epoch_samples_ = 0;
  }
  return turn;
}

// As forward does: the last bucket first, each when it has come.
void Worker::ReadWeights() {
  for (auto bucket = model_.buckets.rbegin(); bucket != model_.buckets.rend(); ++bucket) {
    if (strategy_.StateArrives()) queue_->Wait(strategy_.AwaitBucket(replica_, *bucket));
    const size_t begin = bucket->range.begin;
    const size_t size = std::min(bucket->range.end(), model_.layout.state) - begin;
    flat::Get(*queue_, replica_.state.Sub(begin, size), weights_.data() + begin);
  }
  queue_->Sync();
}

void Worker::RunShard(const Shard& shard, size_t which, bool accumulate, bool last) {
  const Work& work = replica_.work;
  const Layout& layout = model_.layout;
  const float scale = 1.0f / float(work.batch);
  const Slice summand = summands_[which];
  float* out = host_.data() + which * layout.summand;
  queue_->Sync();  // the last step's copies of this memory are done
  const float gradient_scale = scale * LossScale();
  if (!accumulate) std::fill(out, out + layout.summand, 0.0f);
  float loss = 0;
  for (int64_t p = shard.begin; p < shard.end; ++p) {
    for (const Range& range : layout.parameters) {
      for (size_t j = range.begin; j < range.end(); ++j) {
        const float off = weights_[j] - Target(work.epoch, p, j);
        out[j] += gradient_scale * off;
        loss += scale * 0.5f * off * off;
      }
    }
    out[layout.weights] += Target(work.epoch, p, 7) / float(shard.size() * work.filled_shards);
  }
  out[layout.loss()] += loss;
  if (updater_.scales_loss()) OverflowAsHalf({out, layout.weights});
  if (after_backward) after_backward(work, shard, {out, layout.summand});
  if (!last) return flat::Put(*queue_, out, summand);
  for (const Bucket& bucket : model_.buckets) {
    if (before_last_bucket && bucket.index + 1 == int(model_.buckets.size())) {
      before_last_bucket(work);
    }
    flat::Put(*queue_, out + bucket.range.begin,
              summand.Sub(bucket.range.begin, bucket.range.size));
    if (strategy_.Listens()) strategy_.BucketReady(replica_, bucket, queue_->Record());
  }
}

float Worker::LossScale() {
  if (!updater_.scales_loss()) return 1;
  float scale;
  flat::GetNow(*queue_, updater_.loss_scale(), {&scale, 1});
  return scale;
}

void Worker::Finish() { strategy_.End(replica_); }

std::vector<float> Worker::Snapshot() {
  Buffer into(replica_.device, model_.layout.state);
  strategy_.Snapshot(replica_, into);
  std::vector<float> host(model_.layout.state);
  flat::GetNow(*queue_, into, host);
  return host;
}

void Worker::Save(Memory& memory) {
  std::vector<float> state = Snapshot();
  if (!strategy_.Records()) return;
  memory.state = std::move(state);
  memory.step = step_;
  strategy_.Save(replica_, memory);
}

double Worker::last_loss() {
  float loss = 0;
  flat::GetNow(*queue_, summands_[0].Sub(model_.layout.loss(), 1), {&loss, 1});
  return loss;
}

}  // namespace trireme::toy
