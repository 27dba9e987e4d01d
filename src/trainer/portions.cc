#include "trainer/portions.h"

#include <utility>

#include "base/clock.h"
#include "flat/arithmetic.h"
#include "trainer/training_feed.h"

namespace trireme {
namespace {

// Where threads fetch, one portion lies ready while another is computed.
int SlotsFor(const LoaderThreads& threads) { return threads.first > 0 ? 3 : 1; }

}  // namespace

Portions::Portions(const Job& job, Engine& engine, int rank, SpanSink* spans)
    : job_(job),
      pretence_(job.recipe.emulate, rank, job.recipe.transport.ranks),
      spans_(spans),
      queue_(engine.device().NewQueue()),
      executable_(engine.Load(
          Compile(job.graph, engine, job.shard_capacity, Mode::kTrain, job.bucket_floats()),
          *queue_)),
      state_(engine.device(), job.layout.state),
      placed_(PlaceTraining(job, engine)),
      metrics_(engine.device(), Layout::kStepMetrics) {
  Feed feed = TrainingFeed(job);
  const LoaderThreads threads = TrainingThreads(job, feed, placed_.set.get());
  samples_ = {engine, feed, size_t(SlotsFor(threads)), size_t(job.shard_capacity),
              placed_.set.get()};
  class_weights_ = {engine.device(), std::span(job.class_weights)};
  loader_ = std::make_unique<Loader>(std::move(feed), samples_.slots(), threads);
  WorkOf(job.plan, 0, {0, job.plan.shards}, all_);
}

Portions::~Portions() {
  queue_->Sync();  // before the buffers go
}

void Portions::Want(int portion) {
  const Shard& shard = all_.shards.at(size_t(portion));
  loader_->Want({.epoch = 0, .begin = shard.begin, .end = shard.end});
}

PortionSums Portions::Run(Slice summand, bool accumulate) {
  const int64_t number = run_++;
  if (spans_) spans_->BeginStep(number);
  const double began = Now();
  if (pretence_.active()) {
    // Of a step that the workers share equally, which is an epoch's.
    pretence_.InForward(number, double(job_.workers()) / double(all_.shards.size()));
    if (pretence_.spreads()) pretence_.Sleep(1);
    pretended_s_ += Now() - began;
  }
  const Filled filled = loader_->Take();
  const double computing = Now();
  Batch batch{.class_weights = class_weights_,
              .loss_scale = 1.0f / float(all_.batch),
              .statistics_scale = 1.0f / float(all_.filled_shards),
              .first_position = filled.range.begin,
              .marks = &marks_};
  samples_.Show(filled, batch);
  // What the sums of all portions are made of stays apart: they are added in double.
  const Slice metrics = summand.Sub(job_.layout.loss(), Layout::kStepMetrics);
  if (accumulate) flat::Fill(*queue_, 0, metrics);
  executable_->RunShard(batch, state_, summand, accumulate, {});
  flat::Get(*queue_, metrics, metrics_);
  queue_->Sync();
  loader_->Release();
  pretence_.Computed(Now() - computing);
  const auto label = [&](SpanKind kind) {
    return SpanLabel{spans_, Track::kCompute, kind, number, -1};
  };
  forward_.Add(marks_.began, marks_.border, 1, label(SpanKind::kForward));
  backward_.Add(marks_.border, marks_.ended, 1, label(SpanKind::kBackward));
  return {.samples = filled.count, .loss = metrics_[0], .correct = metrics_[1]};
}

StepTimes Portions::times() const {
  return {.data = loader_->numbers().waited_s,
          .forward = forward_.seconds() + pretended_s_,
          .backward = backward_.seconds()};
}

LoaderRecord Portions::loader() const { return RecordOf(loader_->numbers()); }

}  // namespace trireme
