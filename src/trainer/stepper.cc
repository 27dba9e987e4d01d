#include "trainer/stepper.h"

#include <algorithm>
#include <bit>
#include <csignal>

#include "base/clock.h"
#include "base/random.h"
#include "flat/arithmetic.h"
#include "flat/staging.h"
#include "strategy/step/tags.h"
#include "transport/collective/all_reduce.h"

namespace trireme {
namespace {

// Beyond all shards that could vote for an interrupt.
constexpr float kTermination = 1 << 20;

}  // namespace

float VoteOf(int signal) {
  if (signal == 0) return 0;
  return signal == SIGINT ? 1 : kTermination;
}

int SignalOf(double votes) {
  if (votes <= 0) return 0;
  return votes < kTermination ? SIGINT : SIGTERM;
}

Stepper::Stepper(const Job& job, Strategy& strategy, Engine& engine, int worker, Group* workers,
                 const Observer& observer, Generator* generator)
    : job_(job),
      pretence_(job.recipe.emulate, worker + job.strategy.servers, job.recipe.transport.ranks),
      worker_(worker),
      workers_(workers),
      strategy_(strategy),
      queue_(engine.device().NewQueue()),
      executable_(engine.Load(
          Compile(job.graph, engine, job.shard_capacity, Mode::kTrain, job.bucket_floats()),
          *queue_)),
      updater_(job.recipe.optimizer, *job.schedule, job.layout, engine.device()),
      state_(strategy.Place(Role::kState, job.layout.state, engine.device())),
      replica_{.device = engine.device(),
               .queue = *queue_,
               .state = state_.Sub(0, job.layout.trained()),
               .layout = job.layout,
               .buckets = executable_->program().buckets,
               .updater = updater_,
               .observer = observer},
      generator_(generator) {
  for (int i = 0; i < strategy.Summands(); ++i) {
    summands_.push_back(strategy.Place(Role::kSummand, job.layout.summand, engine.device()));
  }
  replica_.summands = summands_;

  const int shards = job.MostShards(worker);
  if (!generator && shards > 0) placed_ = PlaceTraining(job, engine);
  const ResidentSet* const set = placed_.set.get();
  Feed feed = TrainingFeed(job);
  const LoaderThreads threads = generator ? LoaderThreads{} : TrainingThreads(job, feed, set);
  ahead_.resize(generator ? 1 : size_t(StepsInMemory(job, set)));
  const size_t num_slots = std::max<size_t>(1, ahead_.size() * shards);
  samples_ = {engine, feed, num_slots, size_t(job.shard_capacity), set};
  class_weights_ = {engine.device(), std::span(job.class_weights)};
  in_use_.reserve(num_slots);
  for (StepMetrics& metrics : metrics_) metrics.values = {engine.device(), Layout::kStepMetrics};
  generated_.reserve(num_slots);
  if (generator && worker == 0) generator->ShowQueue(observer.spans);
  loader_ = std::make_unique<Loader>(std::move(feed), samples_.slots(), threads);
  if (!job.recipe.data.ledger.empty() && shards) ledger_.emplace(job.recipe.data.ledger, worker);
}

Stepper::~Stepper() {
  queue_->Sync();  // before the buffers go
  if (generator_ && worker_ == 0) generator_->ShowQueue(nullptr);
}

void Stepper::Want(const Work& work) {
  for (const Shard& shard : work.shards) {
    if (shard.size()) loader_->Want({.epoch = work.epoch, .begin = shard.begin, .end = shard.end});
  }
}

Turn Stepper::Take(int64_t step) {
  const int64_t depth = int64_t(ahead_.size());
  if (next_ahead_ < step) next_ahead_ = step;  // the first step of this life
  for (; next_ahead_ < step + depth; ++next_ahead_) {
    Work& work = ahead_[next_ahead_ % depth];
    const Turn turn = strategy_.Next(next_ahead_, work);
    if (turn != Turn::kStep) {
      if (next_ahead_ == step) return turn;
      break;  // asked again when it is due
    }
    if (!generator_) Want(work);
  }
  std::swap(replica_.work, ahead_[step % depth]);
  return Turn::kStep;
}

uint64_t Stepper::RandomKey(int64_t epoch) {
  if (epoch != random_epoch_) {
    random_key_ = HashKey(job_.recipe.trainer.seed, uint64_t(epoch));
    random_epoch_ = epoch;
  }
  return random_key_;
}

void Stepper::TakeGenerated(const Shard& shard, Batch& batch) {
  const Stopwatch watch;
  const Generator::Samples samples = generator_->Take(replica_.work.step, shard.index);
  waited_s_ += watch.seconds();
  batch.count = int(samples.labels.size());
  batch.inputs = samples.inputs;
  batch.labels = samples.labels;
  batch.mixes = samples.mixes;
  generated_.push_back(samples.number);
  if (ledger_) taken_.push_back(samples.range);
}

// The next shard of the loader's, as a batch of the step in replica_.work.
Batch Stepper::NextBatch(const Shard& shard, float vote, Form form) {
  const Work& work = replica_.work;
  Batch batch{.class_weights = class_weights_,
              .loss_scale = 1.0f / float(work.batch),
              .statistics_scale = 1.0f / float(work.filled_shards),
              .random_key = RandomKey(work.epoch),
              .vote = vote,
              .first_position = shard.begin};
  // A rehearsal compares gradients, which must not overflow.
  if (form == Form::kNeeded) batch.gradient_scale = updater_.loss_scale();
  if (shard.size() && generator_ && form == Form::kNeeded) {
    TakeGenerated(shard, batch);
  } else if (shard.size()) {
    const Filled& filled = loader_->Take();
    samples_.Show(filled, batch);
    if (ledger_) taken_.push_back(filled.range);
  }
  return batch;
}

void Stepper::RunShards(float vote, Form form) {
  const Work& work = replica_.work;
  const bool may_leave = form == Form::kNeeded && work.shards.size() == 1 &&
                         strategy_.OnlyUpdates() && updater_.forms_gradients();
  replica_.unwritten = {};
  const Observer& observer = replica_.observer;
  SpanSink* const spans = observer.tracing();
  int64_t sums = 0;
  auto sum = [&](std::span<double> values) {
    observer.Tell(Phase::kBatchNorm, work.step, ++sums);
    AllReduceSum(*workers_, kTagBatchNorm, values);
    observer.Tell(Phase::kCompute, work.step, sums);
  };
  auto await = [this](const Bucket& bucket) { return AwaitBucket(bucket); };
  const bool awaits = strategy_.StateArrives() || pretence_.spreads();
  for (size_t i = 0; i < work.shards.size(); ++i) {
    const Shard& shard = work.shards[i];
    const double began = spans ? Now() : 0;
    Batch batch = NextBatch(shard, vote, form);
    if (spans) spans->Add(Track::kCompute, SpanKind::kData, began, Now(), work.step, int(i));
    if (workers_) batch.sum_over_shards = sum;
    if (may_leave) batch.unwritten = &replica_.unwritten;
    if (awaits) batch.await_bucket = await;
    batch.marks = &marks_;
    observer.Tell(Phase::kCompute, work.step, int64_t(i));
    const Event event = RunShard(batch, i);
    if (shard.size()) in_use_.push_back(event);
  }
}

Event Stepper::RunShard(const Batch& batch, size_t i) {
  const bool last = i + 1 == replica_.work.shards.size();
  const bool announces = last && strategy_.Listens();  // a device may have to stop for it
  const bool sleeps = pretence_.spreads();
  auto ready = [&](const Bucket& bucket, const Event& event) {
    if (sleeps) SleepIn(bucket, 1 - Pretence::kForwardPart);
    if (announces) strategy_.BucketReady(replica_, bucket, event);
  };
  const bool apart = summands_.size() > 1;
  const Event event =
      executable_->RunShard(batch, state_, summands_[apart ? i : 0], !apart && i > 0,
                            announces || sleeps ? Ready(ready) : Ready());
  CountShard(i);
  return event;
}

// In a trace forward is there with what it waited for.
void Stepper::CountShard(size_t shard) {
  const auto label = [&](SpanKind kind) {
    return SpanLabel{replica_.observer.tracing(), Track::kCompute, kind, replica_.work.step,
                     int(shard)};
  };
  forward_.Add(marks_.began, marks_.border, 1, label(SpanKind::kForward));
  backward_.Add(marks_.border, marks_.ended, 1, label(SpanKind::kBackward));
  for (const auto& [began, ended] : marks_.waits) awaited_.Add(began, ended);
}

Event Stepper::AwaitBucket(const Bucket& bucket) {
  const double began = Now();
  Event event = strategy_.AwaitBucket(replica_, bucket);
  aside_s_ += Now() - began;
  if (pretence_.spreads()) {
    const double slept = SleepIn(bucket, Pretence::kForwardPart);
    slept_s_ += slept;
    pretended_s_ += slept;
  }
  return event;
}

// Its share of what this step sleeps in forward or backward, which are `part` of all.
double Stepper::SleepIn(const Bucket& bucket, double part) {
  const size_t weights = job_.layout.weights;
  const size_t size = std::min(bucket.range.end(), weights) - std::min(bucket.range.begin, weights);
  const double slept =
      pretence_.Sleep(part * double(size) / double(weights) / double(replica_.work.shards.size()));
  aside_s_ += slept;
  return slept;
}

void Stepper::Pretend() {
  const Observer& observer = replica_.observer;
  observer.Tell(Phase::kCompute, replica_.work.step);
  const double began = Now();
  const double share = double(replica_.work.shards.size()) * job_.workers() / job_.plan.shards;
  pretence_.InForward(replica_.work.step, strategy_.InStep() ? share : 1);
  const double ended = Now();
  pretended_s_ += ended - began;
  if (SpanSink* const spans = observer.tracing()) {
    spans->Add(Track::kCompute, SpanKind::kForward, began, ended, replica_.work.step);
  }
}

// As a fault of the memory would.
void Stepper::FlipABit() {
  strategy_.AwaitState(replica_);
  float weight;
  const Slice slice = replica_.state.Sub(job_.layout.parameters.back().begin, 1);
  flat::GetNow(*queue_, slice, {&weight, 1});
  weight = std::bit_cast<float>(std::bit_cast<uint32_t>(weight) ^ 1u);
  flat::PutNow(*queue_, {&weight, 1}, slice);
}

bool Stepper::Run(int signal, StepResult& previous) {
  replica_.vote = VoteOf(signal);
  replica_.observer.Tell(Phase::kData, replica_.work.step);
  if (replica_.observer.spans) replica_.observer.spans->BeginStep(replica_.work.step);
  const bool pretends = pretence_.active();
  if (pretends) Pretend();
  strategy_.BeforeStep(replica_);
  taken_.clear();  // by a rehearsal
  aside_s_ = 0;
  // Waiting for samples is no computing.
  const double began = pretends ? Now() - WaitedForSamples() : 0;
  RunShards(replica_.vote,
            Form::kNeeded);  // none, where there are more workers than shards: the strategy knows
  if (pretends) pretence_.Computed(Now() - WaitedForSamples() - began - aside_s_);
  queue_->Wait(strategy_.AfterStep(replica_));
  if (pretence_.flips(replica_.work.step)) FlipABit();
  for (const Positions& range : taken_) {
    ledger_->Note(replica_.work.step, range, loader_->feed().order());
  }

  StepMetrics& now = metrics_[turn_];
  turn_ = 1 - turn_;
  flat::Get(*queue_, summands_[0].Sub(job_.layout.loss(), Layout::kStepMetrics), now.values);
  now.event = job_.recipe.trainer.metrics_steps ? queue_->Mark() : queue_->Record();
  now.step = replica_.work.step;
  now.samples = replica_.work.batch;
  now.open = true;

  ReleaseSamples();
  return Collect(metrics_[turn_], previous);
}

void Stepper::ReleaseSamples() {
  for (size_t i = 0; i < in_use_.size(); ++i) {
    in_use_[i].Wait();
    if (generator_) {
      generator_->Release(generated_[i]);
    } else {
      loader_->Release();
    }
  }
  in_use_.clear();
  generated_.clear();
}

double Stepper::WaitedForSamples() const {
  return generator_ ? waited_s_ : loader_->numbers().waited_s;
}

// Of each shard: to rehearse a step.
void Stepper::CutToOneSample() {
  Work& work = replica_.work;
  for (Shard& shard : work.shards) shard.end = std::min(shard.end, shard.begin + 1);
  work.batch = work.filled_shards;
}

std::vector<float> Stepper::GradientTogether(int64_t step, int workers) {
  if (strategy_.Next(step, replica_.work) != Turn::kStep) {  // there are no steps left
    WorkOf(job_.plan, step, worker_, workers, replica_.work);
  }
  CutToOneSample();
  strategy_.BeforeStep(replica_);
  Want(replica_.work);
  RunShards(0, Form::kAll);
  strategy_.Rehearse(replica_);
  for (size_t i = 0; i < in_use_.size(); ++i) loader_->Release();
  in_use_.clear();
  return GradientOnHost();
}

std::vector<float> Stepper::GradientAlone(int64_t step) {
  WorkOf(job_.plan, step, 0, 1, replica_.work);
  CutToOneSample();
  bool accumulate = false;
  for (const Shard& shard : std::vector(replica_.work.shards)) {
    if (!shard.size()) continue;
    loader_->Want({.epoch = replica_.work.epoch, .begin = shard.begin, .end = shard.end});
    executable_->RunShard(NextBatch(shard, 0, Form::kAll), state_, summands_[0], accumulate, {})
        .Wait();
    loader_->Release();
    accumulate = true;
  }
  return GradientOnHost();
}

std::vector<float> Stepper::GradientOnHost() {
  std::vector<float> gradient(job_.layout.weights);
  flat::GetNow(*queue_, summands_[0].Sub(0, gradient.size()), gradient);
  return gradient;
}

bool Stepper::Collect(StepMetrics& metrics, StepResult& result) {
  if (!metrics.open) return false;
  metrics.event.Wait();
  strategy_.Check();
  metrics.open = false;
  result = {.step = metrics.step,
            .samples = metrics.samples,
            .loss = metrics.values[0],
            .correct = metrics.values[1],
            .votes = metrics.values[Layout::kVotes],
            .ended_s = job_.recipe.trainer.metrics_steps ? metrics.event.FiredAt() : 0};
  return true;
}

bool Stepper::Drain(StepResult& last) { return Collect(metrics_[1 - turn_], last); }

StepTimes Stepper::times() const {
  const Traffic traffic = strategy_.traffic();
  const double awaited = awaited_.seconds();
  // What it waited for beside pretending was the strategy's communication.
  const double exposed = strategy_.StateArrives() ? std::max(0.0, awaited - slept_s_) : 0;
  return {.data = WaitedForSamples(),
          .forward = forward_.seconds() - awaited + pretended_s_,
          .backward = backward_.seconds(),
          .communication = traffic.communication_s + exposed,
          .update = traffic.update_s,
          .hidden = std::max(0.0, traffic.hidden_s - exposed)};
}

LoaderRecord Stepper::loader() const {
  if (generator_) return generator_->record();
  return RecordOf(loader_->numbers());
}

}  // namespace trireme
