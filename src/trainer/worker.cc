#include "trainer/worker.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <limits>
#include <utility>

#include "base/error.h"
#include "flat/arithmetic.h"
#include "flat/staging.h"
#include "health/rank_stats.h"

namespace trireme {
namespace {

// Steps in a row without a finite loss after which going on makes no sense.
constexpr int64_t kDivergedSteps = 100;

std::unique_ptr<Group> GroupOfWorkers(const Job& job, World& world) {
  if (!job.recipe.strategy.sync_batch_norm) return nullptr;
  return world.group().Split(world.rank() < job.strategy.servers ? 1 : 0);
}

}  // namespace

Worker::Worker(const Job& job, World& world, Backend& backend, Strategy& strategy,
               Recorder* recorder, const StopWish& signals, RankWatch* watch, SpanSink* spans,
               Generator* generator)
    : job_(job),
      world_(world),
      engine_(*backend.engine),
      strategy_(strategy),
      recorder_(recorder),
      signals_(signals),
      watch_(watch),
      worker_(world.rank() - job.strategy.servers),
      all_(strategy.InStep() ? &world.group() : nullptr),
      takes_part_(all_ || recorder),
      workers_(GroupOfWorkers(job, world)),
      observer_{watch ? &watch->status() : nullptr, spans},
      stepper_(job, strategy, *backend.engine, worker_, worker_ < 0 ? nullptr : workers_.get(),
               observer_, generator),
      snapshot_(backend.engine->device(), job.layout.state),
      silences_before_(world.size()) {
  if (job.recipe.trainer.ema > 0) {
    average_.emplace(job.recipe.trainer.ema, job.layout.trained(), backend.engine->device());
  }
  if (takes_part_) {
    examiner_.emplace(job, *backend.engine, stepper_.queue());
  }
}

// A checkpoint's model is the average, where there is one; what training moves lies beside it.
void Worker::BeginWith(const Start& start) {
  Replica& replica = stepper_.replica();
  const StateReader* const resume = start.resume();
  const size_t trained = job_.layout.trained(), frozen = job_.layout.frozen;
  if (!strategy_.SharesState() || worker_ == 0) {
    flat::PutNow(replica.queue, start.state, stepper_.state());
    if (resume && resume->Has(kOwnState)) {
      std::vector<float> own(trained);
      resume->Tensor(kOwnState, std::array{int64_t(trained)}, own);
      flat::PutNow(replica.queue, own, replica.state);
    }
  }
  if (average_) average_->Begin(replica.queue, start.state.first(trained));
  if (frozen > 0) {  // no strategy knows of it
    flat::PutNow(replica.queue, start.state.subspan(trained),
                 snapshot_.slice().Sub(trained, frozen));
  }
}

Ending Worker::Run(const Start& start) {
  Replica& replica = stepper_.replica();
  const StateReader* const resume = start.resume();
  BeginWith(start);
  if (resume) {
    at_ = start.at;
    replica.updater.FallTo(at_.rate_falls);
    strategy_.Load(replica, *resume);
  }
  strategy_.Begin(replica);
  clock_ = {};
  seconds_before_ = at_.seconds;
  train_seconds_before_ = at_.train_seconds;
  unsaved_ = !resume;
  saved_step_ = judged_step_ = at_.step;

  const bool together = all_ && all_->size() > 1;
  if (job_.only_self_test || (together && job_.recipe.trainer.self_test)) SelfTest();
  if (job_.only_self_test) return Ending::kTested;
  if (watch_) watch_->Start();
  const int64_t check_steps = together ? job_.recipe.trainer.check_steps : 0;

  if (job_.given_weights && !resume) SaveCheckpoint();

  const int64_t checkpoint_steps = job_.recipe.trainer.checkpoint_steps;
  std::optional<Ending> ending = at_.EndingFor(job_.recipe.trainer);
  if (ending) strategy_.Stop();
  StepResult result;
  for (int64_t turn_number = at_.step; !ending;) {
    const Turn turn = stepper_.Take(turn_number);
    if (turn == Turn::kEnd) break;
    if (turn == Turn::kEpochEnd) {
      // Others may have done the last steps of the epoch, or all of them.
      AdvanceTo(std::min(job_.plan.steps, (at_.epochs_done + 1) * job_.plan.steps_per_epoch()));
      ending = EndOfEpoch();
      continue;
    }
    const int signal = signals_.received();
    if (signal) strategy_.Stop();
    if (stepper_.Run(signal, result)) Count(result);
    if (average_) {
      strategy_.AwaitState(replica);
      average_->Add(replica.queue, replica.work.step, replica.state);
    }
    world_.Worked();
    if (watch_ && watch_->wants()) Publish();
    ++turn_number;
    AdvanceTo(replica.work.step + 1);
    if (check_steps && at_.step % check_steps == 0 && strategy_.Agreed()) CheckWeights();
    if (replica.work.ends_epoch) {
      ending = EndOfEpoch();
    } else if (stop_signal_) {
      ending = Ending::kSignal;
    }
    // With a centre the end of the epoch is told later, and its line comes first: a checkpoint of
    // the same step would keep that line and write it again.
    const bool line_to_come = !all_ && at_.step % job_.plan.steps_per_epoch() == 0;
    const bool due =
        checkpoint_steps && at_.step / checkpoint_steps > saved_step_ / checkpoint_steps;
    if (!ending && (due || owed_) && !line_to_come) SaveCheckpoint();
  }
  if (!ending && !all_) {
    if (signals_.stop()) {
      ending = Ending::kSignal;
    } else {
      AdvanceTo(job_.plan.steps);
    }
  }
  Finish(ending.value_or(Ending::kDone));
  return ending.value_or(Ending::kDone);
}

// Rank 0 judges; an error of its ends all.
void Worker::SelfTest() {
  const Recipe& recipe = job_.recipe;
  const std::string why_not = WhyNoSelfTest(job_.strategy);
  if (!why_not.empty()) {
    if (!job_.only_self_test) return;
    throw UsageError("{}", why_not);
  }
  const std::vector<float> together = stepper_.GradientTogether(at_.step, job_.workers());
  if (world_.rank() != 0) return;
  const bool elsewhere = job_.DeviceOf(0).kind != FindDevice(recipe.trainer.device).kind;
  const double tolerance = recipe.strategy.wire == "f32" && !elsewhere ? 1e-5 : 2e-2;
  self_test_ = CompareGradients(together, stepper_.GradientAlone(at_.step));
  JudgeGradients(*self_test_, world_.size(), job_.plan.shards, tolerance);
}

void Worker::CheckWeights() {
  observer_.Tell(Phase::kCheckWeights, at_.step);
  Replica& replica = stepper_.replica();
  if (!weight_check_) {
    weight_check_ =
        std::make_unique<WeightCheck>(world_.group(), job_.graph, job_.layout, replica.device);
  }
  strategy_.AwaitState(replica);
  weight_check_->Run(at_.step, replica.queue, stepper_.state());
}

// The own signal, else the one that another rank got.
int Worker::exit_code() const {
  if (signals_.stop()) return signals_.ExitCode();
  return StopWish::ExitCodeOf(stop_signal_ ? stop_signal_ : SIGTERM);
}

// With a centre a lease that was given back may come after later ones.
void Worker::AdvanceTo(int64_t step) {
  at_.step = std::max(at_.step, step);
  unsaved_ = true;
}

void Worker::Count(const StepResult& result) {
  if (std::isfinite(result.loss)) {  // else the step has changed nothing
    at_.loss_sum += result.loss * double(result.samples);
    at_.correct += result.correct;
    at_.samples += result.samples;
  }
  at_.all_samples += all_ ? StepSamples(job_.plan, result.step) : result.samples;
  if (!stop_signal_) stop_signal_ = SignalOf(result.votes);
  if (std::isfinite(result.loss)) {
    diverged_since_ = -1;
  } else if (diverged_since_ < 0) {
    diverged_since_ = result.step;
  } else if (result.step - diverged_since_ >= kDivergedSteps) {
    ThrowDiverged(LossFault());
  }
  if (!recorder_) return;
  if (job_.recipe.trainer.metrics_steps) at_.train_seconds = TrainSeconds();  // for a line
  recorder_->Step(result, at_, [&] { return SpentSince(before_line_); });
}

RankRecord Worker::SpentSince(RankRecord& before) {
  const Traffic traffic = strategy_.traffic();
  const RankRecord now{world_.rank(), stepper_.times(), int64_t(traffic.bytes_sent),
                       int64_t(traffic.bytes_received), stepper_.loader()};
  return now.Since(std::exchange(before, now));
}

bool Worker::EvaluationIsDue() const {
  const int every = job_.recipe.trainer.evaluate_every;
  return every && at_.epochs_done % every == 0;
}

void Worker::TakeSnapshot() {
  const Slice trained = snapshot_.slice().Sub(0, job_.layout.trained());
  strategy_.Snapshot(stepper_.replica(), trained);
  if (average_) flat::Copy(stepper_.queue(), average_->slice(), trained);
  stepper_.queue().Sync();
}

void Worker::Evaluate() {
  const Stopwatch pause;
  stepper_.Pause();
  TakeSnapshot();
  EvaluateSnapshot();
  AddPause(pause.seconds(), SpanKind::kEvaluate);
}

void Worker::AddPause(double seconds, SpanKind kind) {
  paused_s_ += seconds;
  if (recorder_) recorder_->Paused(seconds);
  if (!observer_.spans || (kind == SpanKind::kCheckpoint && !recorder_)) return;
  const double now = Now();
  observer_.spans->Add(Track::kCompute, kind, now - seconds, now, observer_.spans->step());
}

void Worker::EvaluateSnapshot() {
  evaluated_step_ = at_.step;
  findings_ = all_ ? examiner_->Run(snapshot_, worker_, job_.workers(), all_, observer_, at_.step)
                   : examiner_->Run(snapshot_);
}

void Worker::DrainStepper() {
  StepResult last;
  if (stepper_.Drain(last)) Count(last);
}

EpochRecord Worker::MeasureEpoch(double epoch) {
  const bool lost = at_.samples == 0 && diverged_since_ >= 0;
  EpochRecord record = CloseEpoch(job_, epoch, at_);
  if (lost) record.train_loss = at_.train_loss = std::numeric_limits<double>::quiet_NaN();
  // Where workers count their own samples, together they have done all of them.
  if (!all_) record.samples = SamplesUntil(job_.plan, at_.step);
  const RankRecord spent = SpentSince(before_epoch_);
  record.times = spent.times.Within(record.seconds);
  record.bytes_sent = spent.bytes_sent;
  record.bytes_received = spent.bytes_received;
  record.loader = spent.loader;
  Replica& replica = stepper_.replica();
  if (recorder_ && replica.updater.scales_loss()) {
    const Updater::ScaleOnHost scale = replica.updater.GetScale(replica.queue);
    record.loss_scale = scale[UpdateScale::kLoss];
    record.skipped_steps = int64_t(scale[UpdateScale::kSkipped]);
    recorder_->ScaledBy(scale);
  }
  return record;
}

// All ranks' numbers, at the rank that records (0 in step), and what they say together.
void Worker::GatherTimes(EpochRecord& record) {
  observer_.Tell(Phase::kEpochEnd, at_.step);
  RankStats own{.rank = {world_.rank(), record.times, record.bytes_sent, record.bytes_received,
                         record.loader},
                .silences = watch_ ? watch_->Silences() : std::vector<double>(world_.size())};
  for (int r = 0; r < world_.size(); ++r) {
    std::swap(own.silences[r], silences_before_[r]);
    own.silences[r] = silences_before_[r] - own.silences[r];
  }
  const auto all = GatherNumbers(world_.group(), own);
  if (!recorder_) return;
  for (const RankStats& numbers : all) record.ranks.push_back(numbers.rank);
  if (const auto late = late_.Add(SharesOf(all), record.seconds)) record.late = late->Text();
}

// All wait for the rank that waits longest for its samples.
void Worker::JudgeInput(EpochRecord& record) {
  if (!recorder_) return;
  RankRecord worst{world_.rank(), record.times, 0, 0, record.loader};
  for (const RankRecord& rank : record.ranks) {
    if (rank.times.data > worst.times.data) worst = rank;
  }
  const InputLoad load{.seconds = record.seconds,
                       .waited_s = worst.times.data,
                       .steps = record.step - judged_step_,
                       .loader = worst.loader,
                       .compute_threads = job_.threads_per_rank,
                       .cores = job_.cores_per_rank,
                       .picture_size = job_.data.train->cuts() ? job_.data.shape.width : 0};
  judged_step_ = record.step;
  input_.Add(load);
  record.input_bound = FindInputBound(load);
}

void Worker::Publish() { watch_->Publish(ShareOf(stepper_.times()), at_.step); }

void Worker::Hint(const EpochRecord& record) {
  const Stopwatch pause;
  recorder_->Hint(record, findings_->test,
                  [&] { return ProbeDeadUnits(job_, engine_, stepper_.queue(), snapshot_); });
  AddPause(pause.seconds(), SpanKind::kEvaluate);
}

std::optional<Ending> Worker::EndOfEpoch() {
  DrainStepper();
  at_.train_seconds = TrainSeconds();
  EpochRecord record = MeasureEpoch(double(++at_.epochs_done));
  if (all_ && all_->size() > 1) GatherTimes(record);
  JudgeInput(record);
  const std::span<const int> shards = strategy_.ShardsOfRanks();
  record.shards.assign(shards.begin(), shards.end());
  if (all_) strategy_.EndEpoch(record.times.data + record.times.forward + record.times.backward);
  std::optional<Ending> ending;
  if (takes_part_ && EvaluationIsDue()) {
    const double began = Now();
    Evaluate();
    ending = at_.Judge(findings_->Judged(), job_.recipe.trainer);
    findings_->AddTo(record);
    record.evaluation_seconds = Now() - began;
  }
  const bool falls = takes_part_ && evaluated_step_ == at_.step && at_.RateFalls(*job_.schedule);
  if (falls) stepper_.replica().updater.FallTo(at_.rate_falls);
  if (recorder_) {
    record.clients = RecordsOf(strategy_.worker_stats()).clients;
    recorder_->Epoch(record);
    if (evaluated_step_ == at_.step && !ending) Hint(record);
    if (falls && !ending && at_.step < job_.plan.steps) recorder_->RateFell(at_);
  }

  if (at_.CheckpointIsDue(job_.recipe.trainer)) SaveCheckpoint();
  // A rank alone need not ask the others: a wish that came with this epoch's line ends it here.
  const bool alone = all_ && all_->size() == 1;
  if (alone && !ending && at_.step < job_.plan.steps) stop_signal_ = signals_.received();
  if (stop_signal_) return Ending::kSignal;
  if (ending) strategy_.Stop();
  return ending;
}

double Worker::TrainSeconds() const { return train_seconds_before_ + clock_.seconds() - paused_s_; }

}  // namespace trireme
