#include "trainer/batch_train.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace trireme {
namespace {

// Values are sums of float32's: two that differ by less may be one.
constexpr double kNoise = 1e-7;

Lbfgs::Options OptionsOf(const OptimizerOptions& o) {
  return {.history = o.history,
          .line = {.decrease = o.line_decrease,
                   .curvature = o.line_curvature,
                   .evaluations = o.line_evaluations,
                   .noise = kNoise}};
}

}  // namespace

BatchTrainer::BatchTrainer(const Job& job, Ranks& ranks, Recorder& recorder,
                           const StopWish& signals)
    : job_(job),
      ranks_(ranks),
      f_(ranks.objective()),
      recorder_(recorder),
      signals_(signals),
      lbfgs_(OptionsOf(job.recipe.optimizer), f_) {}

Ending BatchTrainer::Run(const Start& start) {
  Begin(start);
  const Ending ending = Loop();
  Finish(ending);
  return ending;
}

void BatchTrainer::Begin(const Start& start) {
  at_ = start.at;
  seconds_before_ = at_.seconds;
  train_seconds_before_ = at_.train_seconds;
  const auto weights = start.state.first(job_.layout.weights);
  const auto statistics = start.state.subspan(weights.size());
  statistics_.assign(statistics.begin(), statistics.end());
  f_.Put(Lbfgs::kPoint, weights);
  if (const StateReader* const resume = start.resume()) {
    LoadVectors(*resume);
    saved_step_ = at_.step;
    return;
  }
  lbfgs_.Begin();
  at_.all_samples += job_.plan.samples;
  if (!std::isfinite(lbfgs_.value())) {
    throw Error("the loss of the first weights is not finite; look at data.normalize{}",
                job_.given_weights ? " and at the weights of --init" : "");
  }
  at_.train_loss = f_.seen().loss;
  statistics_ = f_.seen().statistics;
  if (job_.given_weights) SaveCheckpoint();
}

Ending BatchTrainer::Loop() {
  std::optional<Ending> ending = at_.EndingFor(job_.recipe.trainer);
  while (!ending && at_.step < job_.plan.steps) {
    if (lbfgs_.converged()) return Ending::kConverged;
    const Lbfgs::Iteration done = lbfgs_.Iterate();
    at_.all_samples += done.evaluations * job_.plan.samples;
    if (done.step > 0) ending = EndEpoch(done);
    signal_ = signals_.stop() ? signals_.received() : f_.signal();
    if (signal_ && !ending) ending = Ending::kSignal;
  }
  return ending.value_or(Ending::kDone);
}

std::optional<Ending> BatchTrainer::EndEpoch(const Lbfgs::Iteration& done) {
  const BatchObjective::Seen& seen = f_.seen();  // of the point: it was evaluated last
  const int64_t samples = job_.plan.samples;
  statistics_ = seen.statistics;
  at_.train_seconds = TrainSeconds();
  at_.loss_sum = seen.loss * double(samples);
  at_.correct = seen.correct;
  at_.samples = samples;
  const auto spent = [&] { return ranks_.spent().Since(before_); };
  const StepResult result{.step = at_.step++,
                          .samples = samples,
                          .loss = seen.loss,
                          .correct = seen.correct,
                          .ended_s = Now()};
  recorder_.Step(result, at_, spent);
  EpochRecord record = CloseEpoch(job_, double(++at_.epochs_done), at_);
  record.lr = done.step;
  record.evaluations = done.evaluations;
  record.samples_per_second = double(done.evaluations * samples) / record.seconds;
  const RankRecord own = spent();
  before_ = ranks_.spent();
  record.times = own.times.Within(record.seconds);
  record.bytes_sent = own.bytes_sent;
  record.bytes_received = own.bytes_received;
  record.loader = own.loader;
  input_.Add({.seconds = record.seconds,
              .waited_s = record.times.data,
              .steps = int64_t(done.evaluations) * job_.plan.shards,
              .loader = record.loader,
              .compute_threads = job_.threads_per_rank,
              .cores = job_.cores_per_rank,
              .picture_size = job_.data.train->cuts() ? job_.data.shape.width : 0});
  std::optional<Ending> ending;
  const int every = job_.recipe.trainer.evaluate_every;
  if (every && at_.epochs_done % every == 0) {
    const double began = Now();
    Evaluate();
    ending = at_.Judge(findings_->Judged(), job_.recipe.trainer);
    findings_->AddTo(record);
    record.evaluation_seconds = Now() - began;
  }
  record.clients = RecordsOf(f_.worker_stats()).clients;
  recorder_.Epoch(record);
  const int64_t steps = job_.recipe.trainer.checkpoint_steps;
  if (at_.CheckpointIsDue(job_.recipe.trainer) || (steps && at_.step % steps == 0)) {
    SaveCheckpoint();
  }
  return ending;
}

void BatchTrainer::ShowPoint() { f_.Show(Lbfgs::kPoint, statistics_); }

void BatchTrainer::Evaluate() {
  const Stopwatch pause;
  ranks_.Pause();
  ShowPoint();
  findings_ = ranks_.Examine(at_.step);
  evaluated_step_ = at_.step;
  paused_s_ += pause.seconds();
  recorder_.Paused(pause.seconds());
}

std::vector<float> BatchTrainer::StateOnHost() {
  std::vector<float> state(job_.layout.state);
  f_.Get(Lbfgs::kPoint, std::span(state).first(job_.layout.weights));
  std::ranges::copy(statistics_, state.begin() + std::ptrdiff_t(job_.layout.weights));
  return state;
}

std::string BatchTrainer::FaultOf(std::span<const float> state) const {
  return recorder_.FaultOf(state, at_, evaluated_step_ == at_.step ? &*findings_ : nullptr);
}

void BatchTrainer::SaveCheckpoint() {
  if (saved_step_ == at_.step) return;
  saved_step_ = at_.step;
  const Stopwatch pause;
  ranks_.Pause();
  at_.seconds = seconds_before_ + clock_.seconds();
  at_.train_seconds = TrainSeconds();
  const std::vector<float> state = StateOnHost();
  recorder_.Checkpoint(state, at_, FaultOf(state), [&](StateWriter& writer) {
    lbfgs_.Save(writer);
    SaveVectors(writer);
  });
  paused_s_ += pause.seconds();
  recorder_.Paused(pause.seconds());
}

namespace {

std::string PairName(size_t i) { return fmt::format("lbfgs.{}.{}", i % 2 ? "y" : "s", i / 2); }
constexpr char kGradientName[] = "lbfgs.gradient";

}  // namespace

void BatchTrainer::SaveVectors(StateWriter& writer) {
  std::vector<float> values(job_.layout.weights);
  const auto save = [&](int vector, const std::string& name) {
    f_.Get(vector, values);
    writer.Tensor(name, std::array{int64_t(values.size())}, values);
  };
  save(Lbfgs::kGradient, kGradientName);
  const std::vector<int> pairs = lbfgs_.LivingPairs();
  for (size_t i = 0; i < pairs.size(); ++i) save(pairs[i], PairName(i));
}

void BatchTrainer::LoadVectors(const StateReader& reader) {
  lbfgs_.Load(reader);
  std::vector<float> values(job_.layout.weights);
  const auto load = [&](int vector, const std::string& name) {
    reader.Tensor(name, std::array{int64_t(values.size())}, values);
    f_.Put(vector, values);
  };
  load(Lbfgs::kGradient, kGradientName);
  const std::vector<int> pairs = lbfgs_.LivingPairs();
  for (size_t i = 0; i < pairs.size(); ++i) load(pairs[i], PairName(i));
}

// Patience has run out: the point becomes that of the best checkpoint, and is evaluated again;
// false if it is lost.
bool BatchTrainer::ReturnToBest() {
  const auto best = recorder_.ReturnToBest(at_);
  if (!best) {
    at_.ForgetBest();
    if (findings_) at_.Judge(findings_->Judged(), job_.recipe.trainer);
    return false;
  }
  at_.train_loss = best->at.train_loss;
  const std::span<const float> state = best->state;
  f_.Put(Lbfgs::kPoint, state.first(job_.layout.weights));
  statistics_.assign(state.begin() + std::ptrdiff_t(job_.layout.weights), state.end());
  Evaluate();
  return true;
}

void BatchTrainer::Finish(Ending ending) {
  at_.train_seconds = TrainSeconds();
  const bool returned = ending == Ending::kPatience && ReturnToBest();
  if (!returned) SaveCheckpoint();
  if (ending == Ending::kSignal) return recorder_.Stopped(signal_, at_);
  if (evaluated_step_ != at_.step) {
    Evaluate();
    at_.Judge(findings_->Judged(), job_.recipe.trainer);
  }
  EvaluationDetails details = ranks_.Details();
  at_.seconds = seconds_before_ + clock_.seconds();
  const std::vector<float> state = StateOnHost();
  const std::string fault = returned ? "" : FaultOf(state);
  if (!fault.empty()) throw Error("{}", fault);
  if (ranks_.device()) recorder_.ComputedOn(*ranks_.device());
  recorder_.Summarize(state, at_, ending, *findings_, std::move(details), input_,
                      RecordsOf(f_.worker_stats()));
}

}  // namespace trireme
