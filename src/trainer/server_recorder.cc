#include "trainer/server_recorder.h"

#include <algorithm>

#include "base/start_thread.h"
#include "flat/staging.h"
#include "trainer/dead_units.h"

namespace trireme {
namespace {

constexpr size_t kMostImages = 3;  // that wait: no snapshot is added, and an epoch's end waits

}  // namespace

ServerRecorder::ServerRecorder(const Job& job, RunDirectory& directory, Progress& progress,
                               const StopWish& signals, const Start& start)
    : job_(job),
      progress_(progress),
      signals_(signals),
      recorder_(job, directory, progress, start.at),
      next_snapshot_s_(job.recipe.strategy.snapshot_s),
      at_(start.at),
      seconds_before_(at_.seconds),
      frozen_(start.state.begin() + std::ptrdiff_t(job.layout.trained()), start.state.end()),
      thread_(StartThread("the thread that evaluates", [this] { Work(); })) {
  if (start.resume()) saved_step_ = taken_step_ = start.at.step;
  if (const auto ending = start.at.EndingFor(job.recipe.trainer)) EndWith(*ending);
}

ServerRecorder::~ServerRecorder() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
}

// Steps that a run in step would have done with as many positions.
int64_t ServerRecorder::StepOf(const Server::Progress& progress) const {
  const Plan& plan = job_.plan;
  const int64_t epoch = progress.positions / plan.samples;
  const int64_t rest = progress.positions - epoch * plan.samples;
  const int64_t step = trireme::StepOf(plan, epoch, rest);
  return std::min(step, plan.steps);
}

// ---- on the server's thread

void ServerRecorder::Take(const Server& server, What what) {
  server.Gather();
  const double now = clock_.seconds();
  Image image{.what = what,
              .save = what != What::kEpoch || now >= next_snapshot_s_,
              .progress = server.progress(),
              .clients = server.clients(),
              .seconds = now};
  image.state.assign(server.centre().begin(), server.centre().end());
  image.state.insert(image.state.end(), frozen_.begin(), frozen_.end());
  server.Save(image.saved);
  taken_step_ = StepOf(image.progress);
  if (image.save) next_snapshot_s_ = now + job_.recipe.strategy.snapshot_s;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return images_.size() < kMostImages || error_; });
  images_.push_back(std::move(image));
  lock.unlock();
  changed_.notify_all();
  Rethrow();
}

void ServerRecorder::EpochEnded(const Server& server) { Take(server, What::kEpoch); }

bool ServerRecorder::Busy() {
  std::lock_guard lock(mutex_);
  return images_.size() >= kMostImages && !error_;  // Take throws the error
}

void ServerRecorder::Look(const Server& server) {
  const Server::Progress progress = server.progress();
  const int64_t step = StepOf(progress);
  if (std::unique_lock lock(shown_, std::try_to_lock); lock && progress.samples > 0) {
    progress_.Step(step, [&] {
      StepProgress shown;
      shown.epoch = std::min(progress.epochs + 1, job_.epochs());
      shown.epochs = job_.epochs();
      shown.step = step;
      shown.steps = job_.plan.steps;
      shown.samples = progress.positions;
      shown.loss = progress.loss_sum / double(progress.samples);
      if (job_.classifies()) shown.accuracy = progress.correct / double(progress.samples);
      return shown;
    });
  }
  const int64_t every = job_.recipe.trainer.checkpoint_steps;
  const bool due = clock_.seconds() >= next_snapshot_s_ ||
                   (every && step / every > std::max<int64_t>(0, taken_step_) / every) ||
                   (job_.given_weights && taken_step_ < 0);
  // The end of an epoch takes one anyway, with a line that belongs before it.
  const bool ends_epoch = step % job_.plan.steps_per_epoch() == 0 && step > 0;
  if (due && step > taken_step_ && !ends_epoch && !Busy()) Take(server, What::kSnapshot);
}

bool ServerRecorder::Stop() { return enough_ || signal() != 0; }

Ending ServerRecorder::Finish(const Server& server) {
  Take(server, What::kEnd);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return images_.empty() || error_; });
  lock.unlock();
  Rethrow();
  return ending();
}

void ServerRecorder::Rethrow() {
  std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

// ---- on its own thread

void ServerRecorder::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closing_ || (!images_.empty() && !error_); });
    if (closing_) return;
    Image image = std::move(images_.front());
    lock.unlock();
    std::exception_ptr error;
    try {
      Handle(image);
    } catch (const std::exception&) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = error;
    images_.pop_front();
    changed_.notify_all();
  }
}

void ServerRecorder::Handle(Image& image) {
  at_.step = StepOf(image.progress);
  at_.all_samples = image.progress.positions;
  at_.loss_sum = image.progress.loss_sum;
  at_.correct = image.progress.correct;
  at_.samples = image.progress.samples;
  at_.seconds = seconds_before_ + image.seconds;
  at_.train_seconds = at_.seconds;
  // A whole last epoch ends with the run; a resumed server tells once more of the last one's end.
  if (image.progress.epochs > at_.epochs_done) EndEpoch(image);
  const bool ends = image.what == What::kEnd && ending() != Ending::kSignal;
  const bool due = image.save || at_.CheckpointIsDue(job_.recipe.trainer);
  const bool returned = ends && ending() == Ending::kPatience && ReturnToBest(image);
  if (!returned && due && at_.step != saved_step_) Save(image);
  if (ends) Summarize(image, returned);
  if (image.what == What::kEnd && !ends) recorder_.Stopped(signal(), at_);
}

// Patience has run out: the image becomes that of the best checkpoint; false if it is lost.
bool ServerRecorder::ReturnToBest(Image& image) {
  auto best = recorder_.ReturnToBest(at_);
  if (!best) {
    at_.ForgetBest();
    evaluated_step_ = -1;
    return false;
  }
  image.state = std::move(best->state);
  at_.train_loss = best->at.train_loss;
  at_.samples = 0;  // of the epoch that was under way
  Evaluate(image);
  return true;
}

void ServerRecorder::Summarize(const Image& image, bool returned) {
  if (evaluated_step_ != at_.step) {
    Evaluate(image);
    at_.Judge(findings_->Judged(), job_.recipe.trainer);
  }
  const std::string fault = FaultOf(image);
  if (!fault.empty()) ThrowDiverged(fault);
  ClientsRecord clients = RecordsOf(image.clients);
  // With those who have gone for good, too.
  clients.all.updates = image.progress.updates;
  clients.all.samples = image.progress.positions;
  std::lock_guard lock(shown_);
  if (const int64_t each = job_.plan.steps_per_epoch();
      !returned && at_.step % each && at_.samples) {
    EpochRecord part = MeasureEpoch(image, double(at_.step) / double(each));
    findings_->AddTo(part);
    recorder_.Epoch(part);
  }
  recorder_.Summarize(image.state, at_, ending(), *findings_, examiner_->Details(), {}, clients);
}

EpochRecord ServerRecorder::MeasureEpoch(const Image& image, double epoch) {
  const double samples = double(at_.samples);  // its border may have moved: see EpochBorder
  EpochRecord record = CloseEpoch(job_, epoch, at_);
  record.samples_per_second = samples / record.seconds;
  record.bytes_sent = int64_t(image.progress.bytes_sent - sent_before_);
  record.bytes_received = int64_t(image.progress.bytes_received - received_before_);
  sent_before_ = image.progress.bytes_sent;
  received_before_ = image.progress.bytes_received;
  record.clients = RecordsOf(image.clients).clients;
  return record;
}

void ServerRecorder::EndEpoch(const Image& image) {
  EpochRecord record = MeasureEpoch(image, double(++at_.epochs_done));
  const int every = job_.recipe.trainer.evaluate_every;
  if (every && at_.epochs_done % every == 0) {
    const Stopwatch watch;
    Evaluate(image);
    if (!enough_) {  // what workers still did after the end changes nothing
      const auto ending = at_.Judge(findings_->Judged(), job_.recipe.trainer);
      if (ending) EndWith(*ending);
    }
    findings_->AddTo(record);
    record.evaluation_seconds = watch.seconds();
  }
  std::lock_guard lock(shown_);
  recorder_.Epoch(record);
  if (evaluated_step_ != at_.step) return;
  recorder_.Hint(record, findings_->test,
                 [&] { return ProbeDeadUnits(job_, *backend_.engine, *queue_, state_); });
}

void ServerRecorder::Evaluate(const Image& image) {
  if (!examiner_) {
    backend_ = job_.make_backend({.threads = job_.threads_per_rank});
    queue_ = backend_.engine->device().NewQueue();
    state_ = Buffer(backend_.engine->device(), job_.layout.state);
    examiner_.emplace(job_, *backend_.engine, *queue_);
  }
  flat::PutNow(*queue_, image.state, state_);
  findings_ = examiner_->Run(state_);
  evaluated_step_ = at_.step;
}

std::string ServerRecorder::FaultOf(const Image& image) const {
  return recorder_.FaultOf(image.state, at_, evaluated_step_ == at_.step ? &*findings_ : nullptr);
}

void ServerRecorder::EndWith(Ending ending) {
  {
    std::lock_guard lock(mutex_);
    if (!early_) early_ = ending;
  }
  enough_ = true;
}

Ending ServerRecorder::ending() {
  std::lock_guard lock(mutex_);
  return early_.value_or(signal() ? Ending::kSignal : Ending::kDone);
}

void ServerRecorder::Save(const Image& image) {
  recorder_.Checkpoint(image.state, at_, FaultOf(image),
                       [&](StateWriter& writer) { image.saved.WriteTo(writer); });
  saved_step_ = at_.step;
}

}  // namespace trireme
