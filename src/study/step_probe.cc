#include "study/step_probe.h"

#include <algorithm>
#include <memory>

#include "base/clock.h"
#include "base/text.h"
#include "data/feed.h"
#include "data/loader.h"
#include "flat/staging.h"
#include "graph/layout.h"
#include "optimizer/updater.h"
#include "study/statistics.h"
#include "trainer/job.h"

namespace trireme {
namespace {

constexpr int kFewSamples = 4;
constexpr double kProbeSeconds = 1.5;  // for each size
constexpr int kLeastTries = 3, kMostTries = 50;

// A rank alone, without loops of a trainer.
class StepProbe {
 public:
  StepProbe(const Job& job, int capacity)
      : job_(job),
        backend_(job.make_backend({.threads = job.threads_per_rank})),
        device_(backend_.engine->device()),
        queue_(device_.NewQueue()),
        executable_(backend_.engine->Load(
            Compile(job.graph, *backend_.engine, capacity, Mode::kTrain, 1), *queue_)),
        updater_(job.recipe.optimizer, *job.schedule, job.layout, device_),
        state_(device_, job.layout.state),
        summand_(device_, job.layout.summand),
        inputs_(device_, size_t(capacity) * size_t(job.graph.input().size())),
        labels_(device_, size_t(capacity)),
        feed_(Feed::ForTraining(*job.data.train, job.normalizer, job.recipe.data,
                                job.recipe.trainer.seed)) {
    flat::PutNow(*queue_, job.initial_state, state_);
    shares_.resize(executable_->program().buckets.size());
  }

  struct Times {
    double fetch = 0, forward = 0, backward = 0, update = 0;
  };

  Times Once(int samples) {
    Times times;
    const Stopwatch fetch;
    feed_.Fill({.epoch = 0, .begin = 0, .end = samples}, inputs_.data(), labels_.data());
    times.fetch = fetch.seconds();
    std::vector<double> ready_s(shares_.size());
    auto note = [&](const Bucket& bucket, const Event& event) {
      event.Wait();
      ready_s[size_t(bucket.index)] = Now();
    };
    ShardMarks marks;
    const Batch batch{
        .inputs = inputs_.values().first(size_t(samples) * inputs_.size() / labels_.size()),
        .labels = labels_.values().first(size_t(samples)),
        .count = samples,
        .loss_scale = 1.0f / float(samples),
        .gradient_scale = updater_.loss_scale(),
        .marks = &marks};
    executable_->RunShard(batch, state_, summand_, false, Ready(note)).Wait();
    queue_->Sync();
    const double border_s = marks.border.FiredAt();
    times.forward = border_s - marks.began.FiredAt();
    times.backward = marks.ended.FiredAt() - border_s;
    for (size_t i = 0; i < ready_s.size(); ++i) {
      const double share = (ready_s[i] - border_s) / std::max(times.backward, 1e-9);
      shares_[i].push_back(std::clamp(share, 0.0, 1.0));
    }
    const Stopwatch update;
    updater_.Apply(*queue_, 0, summand_, state_.slice().Sub(0, job_.layout.trained()));
    queue_->Sync();
    times.update = update.seconds();
    return times;
  }

  // The shortest times, the first try apart: what else the machine does makes them longer.
  Times Usual(int samples, double seconds) {
    Once(samples);
    for (auto& share : shares_) share.clear();
    const Stopwatch watch;
    std::vector<double> fetch, forward, backward, update;
    for (int i = 0; i < kMostTries && (i < kLeastTries || watch.seconds() < seconds); ++i) {
      const Times times = Once(samples);
      fetch.push_back(times.fetch);
      forward.push_back(times.forward);
      backward.push_back(times.backward);
      update.push_back(times.update);
    }
    return {SpreadOf(fetch).low, SpreadOf(forward).low, SpreadOf(backward).low,
            SpreadOf(update).low};
  }

  // After Usual.
  void FillStretches(StepModel& model) const {
    double before = 0;
    model.stretches.clear();
    for (const Bucket& bucket : executable_->program().buckets) {
      const double bytes = double(bucket.range.size) * sizeof(float);
      if (bucket.range.begin >= job_.layout.weights) {
        model.tail_bytes += bytes;
        continue;
      }
      before = std::max(before, SpreadOf(shares_[size_t(bucket.index)]).median);
      model.stretches.push_back({bytes, before});
    }
  }

 private:
  const Job& job_;
  Backend backend_;
  Device& device_;
  const std::unique_ptr<Queue> queue_;
  const std::unique_ptr<Executable> executable_;
  Updater updater_;
  const Buffer state_, summand_;
  const HostBuffer<float> inputs_;
  const HostBuffer<int32_t> labels_;
  const Feed feed_;
  std::vector<std::vector<double>> shares_;  // by bucket
};

// The same on one rank: who measures has one.
Job AloneJob(Recipe recipe) {
  recipe.transport.ranks = 1;
  recipe.transport.name = "threads";
  recipe.strategy.name = "allreduce";
  recipe.trainer.shards = 0;
  recipe.trainer.accumulate = 1;
  return PrepareJob(recipe, BackendOf(recipe));
}

StepSeconds Through(double few, double few_seconds, double many, double many_seconds) {
  const double slope = std::max(0.0, (many_seconds - few_seconds) / (many - few));
  return {std::max(0.0, many_seconds - slope * many), slope};
}

}  // namespace

StepModel ProbeStretches(const Recipe& recipe) {
  const Job job = AloneJob(recipe);
  StepModel model;
  const int samples = int(std::min<int64_t>(kFewSamples, job.data.train->size()));
  StepProbe probe(job, samples);
  probe.Usual(samples, 0.2);
  probe.FillStretches(model);
  model.samples = double(job.data.train->size());
  model.wire_factor = recipe.strategy.wire == "bf16" ? 0.5 : 1;
  return model;
}

StepModel ProbeStep(const Recipe& recipe) {
  const Job job = AloneJob(recipe);
  const int many = job.shard_capacity, few = std::max(1, many / 4);
  StepProbe probe(job, many);
  const StepProbe::Times less = probe.Usual(few, kProbeSeconds);
  const StepProbe::Times more = probe.Usual(many, kProbeSeconds);
  StepModel model;
  probe.FillStretches(model);
  if (few < many) {
    model.forward = Through(few, less.forward, many, more.forward);
    model.backward = Through(few, less.backward, many, more.backward);
  } else {
    model.forward.per_sample = more.forward / many;
    model.backward.per_sample = more.backward / many;
  }
  model.update_s = more.update;
  const int64_t values = job.graph.input().size() * many;
  const int threads =
      ChooseLoaderThreads(recipe.data.threads, values, job.cores_per_rank, job.threads_per_rank,
                          job.data.train->cuts() || recipe.emulate.decode_ms > 0)
          .most;
  const double fetch = more.fetch / many + recipe.emulate.decode_ms * 1e-3;
  (threads ? model.loader_s_per_sample : model.fetch_s_per_sample) = fetch / std::max(1, threads);
  if (recipe.emulate.step_ms > 0) {  // computing is a part of it
    model.backward = {more.backward, 0};
    model.forward = {std::max(0.0, recipe.emulate.step_ms * 1e-3 - more.backward), 0};
  }
  model.batch = double(job.plan.batch);
  model.batch_per_worker = recipe.trainer.batch_per_worker > 0;
  model.samples = double(job.data.train->size());
  model.wire_factor = recipe.strategy.wire == "bf16" ? 0.5 : 1;
  return model;
}

}  // namespace trireme
