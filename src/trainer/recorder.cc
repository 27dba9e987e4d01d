#include "trainer/recorder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/machine.h"
#include "base/text.h"
#include "base/version.h"
#include "model/model_card.h"
#include "model/model_file.h"
#include "record/timestamp.h"
#include "trainer/early_hint.h"
#include "trainer/mistakes_json.h"

namespace trireme {
namespace {

std::optional<int64_t> BestOf(const TrainState& at) {
  return at.best_step < 0 ? std::nullopt : std::optional(at.best_step);
}

}  // namespace

ClientRecord RecordOf(const ClientStats& numbers) {
  const auto counts = numbers.staleness.counts();
  return {.name = numbers.name,
          .here = numbers.here,
          .updates = numbers.pushes,
          .samples = numbers.samples,
          .refused = numbers.refused,
          .removed = numbers.removed,
          .waited_seconds = numbers.waited_s,
          .overflows = numbers.overflows,
          .staleness_mean = numbers.staleness.mean(),
          .staleness_max = numbers.staleness.most(),
          .staleness = {counts.begin(), counts.end()}};
}

ClientsRecord RecordsOf(std::span<const ClientStats> clients) {
  ClientsRecord records;
  ClientStats all{.name = "all"};
  for (const ClientStats& numbers : clients) {
    records.clients.push_back(RecordOf(numbers));
    all.pushes += numbers.pushes;
    all.samples += numbers.samples;
    all.waited_s += numbers.waited_s;
    all.overflows += numbers.overflows;
    all.staleness.Add(numbers.staleness);
  }
  records.all = RecordOf(all);
  return records;
}

int64_t SamplesUntil(const Plan& plan, int64_t step) {
  Plan done = plan;
  done.steps = step;
  return PositionsOf(done);
}

double SamplesOfEpoch(const Plan& plan, int64_t step) {
  const int64_t epochs_before = std::max<int64_t>(0, step - 1) / plan.steps_per_epoch();
  return double(SamplesUntil(plan, step) - epochs_before * plan.samples);
}

EpochRecord CloseEpoch(const Job& job, double epoch, TrainState& at) {
  EpochRecord record;
  record.epoch = epoch;
  record.step = at.step;
  record.time = at.train_seconds;
  record.seconds = at.train_seconds - std::exchange(at.epoch_began_s, at.train_seconds);
  if (at.samples) {
    at.train_loss = at.loss_sum / double(at.samples);
    record.train_loss = at.train_loss;
    if (job.classifies()) record.train_accuracy = at.correct / double(at.samples);
  }
  at.loss_sum = at.correct = 0;
  at.samples = 0;
  record.samples_per_second = SamplesOfEpoch(job.plan, at.step) / record.seconds;
  record.samples = at.all_samples;
  record.lr = job.schedule->rate(std::max<int64_t>(0, at.step - 1), at.rate_falls);
  return record;
}

std::string MachineText(const Job& job) {
  const Machine machine = ReadMachine();
  return fmt::format("{}, {}, {} a rank", machine.cpu_model, machine.architecture,
                     Counted(job.threads_per_rank, "thread"));
}

Recorder::Recorder(const Job& job, RunDirectory& directory, Progress& progress,
                   const TrainState& at)
    : job_(job),
      directory_(directory),
      progress_(progress),
      checkpoints_(directory.checkpoints(), job.recipe.trainer.keep, BestOf(at)),
      judged_(at.epochs_done > 0) {
  if (job.recipe.record.tensorboard) {
    tensorboard_.emplace(directory.path() + "/tensorboard", at.step);
  }
}

void Recorder::Step(const StepResult& result, const TrainState& at,
                    FunctionRef<RankRecord()> spent) {
  if (last_line_samples_ < 0) {  // a resumed run has some behind it
    const int64_t own =
        job_.strategy.in_step() ? StepSamples(job_.plan, result.step) : result.samples;
    last_line_samples_ = at.all_samples - own;
  }
  const int64_t every = job_.recipe.trainer.metrics_steps;
  line_loss_sum_ += result.loss * double(result.samples);
  line_samples_ += result.samples;
  if (every && (result.step + 1) % every == 0) {
    StepRecord record;
    record.epoch = at.epochs_done;
    record.step = result.step + 1;
    record.train_loss = std::exchange(line_loss_sum_, 0) / double(std::exchange(line_samples_, 0));
    record.lr = job_.schedule->rate(result.step, at.rate_falls);
    record.seconds = result.ended_s - last_line_s_;
    record.samples_per_second = double(at.all_samples - last_line_samples_) / record.seconds;
    const RankRecord own = spent();
    record.times = own.times;
    record.bytes_sent = own.bytes_sent;
    record.bytes_received = own.bytes_received;
    record.loader = own.loader;
    last_line_s_ = result.ended_s;
    last_line_samples_ = at.all_samples;
    record.samples = at.all_samples;
    record.time = at.train_seconds;
    directory_.AppendMetrics(ToJson(record));
    if (tensorboard_) tensorboard_->Add(record.step, ScalarsOf(record));
  }
  progress_.Step(result.step + 1, [&] {
    StepProgress shown;
    shown.epoch = at.epochs_done + 1;
    shown.epochs = job_.epochs();
    shown.step = result.step + 1;
    shown.steps = job_.plan.steps;
    shown.samples = at.all_samples;
    shown.loss = at.loss_sum / double(at.samples);
    if (at.samples && job_.classifies()) shown.accuracy = at.correct / double(at.samples);
    return shown;
  });
}

void Recorder::ScaledBy(const Updater::ScaleOnHost& scale) {
  summary_.loss_scale = scale[UpdateScale::kLoss];
  summary_.skipped_steps = int64_t(scale[UpdateScale::kSkipped]);
}

void Recorder::Epoch(const EpochRecord& record) {
  directory_.AppendMetrics(ToJson(record));
  if (tensorboard_) tensorboard_->Add(record.step, ScalarsOf(record));
  progress_.Epoch(record, job_.epochs());
  const int threads = record.loader.threads;
  const bool decodes = job_.data.train->cuts() || job_.recipe.emulate.decode_ms > 0;
  if (!decodes || !job_.recipe.data.threads.is_word() || threads == said_threads_) return;
  said_threads_ = threads;
  progress_.Message(fmt::format("data.threads = auto: {} {} samples", threads,
                                threads == 1 ? "thread fetches" : "threads fetch"));
}

void Recorder::Hint(const EpochRecord& record, const Evaluation& test,
                    FunctionRef<std::optional<DeadUnits>()> find_dead) {
  if (judged_ || !IsTimeForHint(job_, record.step)) return;
  judged_ = true;
  const std::string hint = EarlyHint(job_, record, test, find_dead);
  if (!hint.empty()) progress_.Message("hint: " + hint);
}

void Recorder::RateFell(const TrainState& at) {
  const double rate = job_.schedule->rate(at.step, at.rate_falls);
  if (rate == job_.schedule->rate(at.step, at.rate_falls - 1)) return;  // the least already
  progress_.Message(
      fmt::format("the learning rate falls to {:.3g}: the best evaluation is that of epoch {}",
                  rate, at.best_epoch));
}

void Recorder::Paused(double seconds) { last_line_s_ += seconds; }

void Recorder::Stopped(int signal, const TrainState& at) { directory_.AppendStop(signal, at.step); }

void ThrowDiverged(const std::string& fault) {
  throw Error("{}; lower optimizer.lr or set trainer.clip", fault);
}

std::string Recorder::FaultOf(std::span<const float> state, const TrainState& at,
                              const Findings* findings) const {
  const std::string tensor = FirstNotFinite(job_.graph, job_.layout, state);
  if (!tensor.empty()) return fmt::format("{} is not finite after step {}", tensor, at.step);
  if (!findings || findings->Finite()) return "";
  return fmt::format("the {} loss is not finite after step {}",
                     std::isfinite(findings->test.loss) ? "validation" : "test", at.step);
}

void Recorder::Checkpoint(std::span<const float> state, const TrainState& at,
                          const std::string& fault, FunctionRef<void(StateWriter&)> save) {
  if (!fault.empty()) {
    if (!said_fault_) progress_.Message("no checkpoint was written: " + fault);
    said_fault_ = true;
    return;
  }
  said_fault_ = false;
  directory_.CheckThere();
  try {
    const auto writer = checkpoints_.Begin(at.step, {{"format", "pt"}});
    WriteModel(job_.graph, job_.layout, state, writer->model());
    at.Save(writer->state());
    ModelCardOf(job_).Save(writer->state());
    save(writer->state());
    directory_.SyncMetrics();
    writer->Commit(BestOf(at));
  } catch (const Error&) {
    directory_.CheckThere();  // a folder that went meanwhile is the better reason
    throw;
  }
}

std::optional<Recorder::Saved> Recorder::ReturnToBest(const TrainState& at) {
  if (at.best_step < 0) return {};
  try {
    const trireme::Checkpoint best(checkpoints_.FolderOf(at.best_step));
    Saved saved{job_.initial_state, TrainState::Load(best.state())};
    ReadModel(job_.graph, job_.layout, best.model(), saved.state);
    checkpoints_.ReturnTo(at.best_step);
    return saved;
  } catch (const Error& error) {
    progress_.Message(fmt::format("the best checkpoint is lost: {}", error.what()));
    return {};
  }
}

void Recorder::ComputedOn(const Device& device) {
  if (device.host_visible()) return;  // peak_memory_bytes says it all
  summary_.device_name = device.model();
  summary_.device_memory_bytes = int64_t(device.allocated_bytes());
}

void Recorder::Summarize(std::span<const float> state, const TrainState& at, Ending ending,
                         const Findings& findings, EvaluationDetails details,
                         const InputLoad& input, const ClientsRecord& clients) {
  if (at.best_step >= 0) checkpoints_.SetBest(at.best_step);  // the last evaluation may be it
  const Recipe& recipe = job_.recipe;
  Summary& summary = summary_;
  const Evaluation& evaluation = findings.test;
  summary.end_reason = ReasonOf(ending);
  EpochRecord found;
  findings.AddTo(found);
  summary.test_loss = found.test_loss;
  summary.test_accuracy = found.test_accuracy;
  summary.test_top5 = found.test_top5;
  summary.test_numbers = found.test_numbers;
  summary.validation_loss = found.validation_loss;
  summary.validation_accuracy = found.validation_accuracy;
  summary.validation_numbers = found.validation_numbers;
  if (at.best_step >= 0) {
    summary.best_epoch = at.best_epoch;
    if (evaluation.errors) {
      summary.best_rmse = -at.best_score;
    } else {
      summary.best_accuracy = at.best_score;
    }
  }
  // A run may end within an epoch: then its part counts.
  summary.train_loss = at.samples ? at.loss_sum / double(at.samples) : at.train_loss;
  summary.confusion = evaluation.confusion;
  summary.roc = std::move(details.roc);
  summary.classes = job_.data.classes;
  summary.parameters_sha256 = HashModel(job_.graph, job_.layout, state);
  // At a free pace this rank has trained a part of the samples that the workers have used.
  const int64_t samples =
      job_.strategy.in_step() ? at.all_samples : SamplesUntil(job_.plan, at.step);
  summary.samples_per_second = double(samples) / at.train_seconds;
  summary.train_seconds = at.train_seconds;
  summary.seconds = at.seconds;
  summary.epochs = at.epochs_done;
  summary.steps = at.step;
  summary.peak_memory_bytes = PeakMemoryBytes();
  summary.ranks = recipe.transport.ranks;
  summary.strategy = recipe.strategy.name;
  summary.transport = recipe.transport.name;
  summary.device = recipe.trainer.device;
  summary.precision = recipe.trainer.precision;
  if (recipe.optimizer.scales_loss && job_.strategy.leases_work()) {
    summary.skipped_steps = clients.all.overflows;
  }
  summary.machine = MachineText(job_);
  summary.version = Version();
  summary.commit = Commit();
  summary.host = ReadMachine().host;
  summary.started_at = directory_.started_at();
  summary.ended_at = UtcNow();
  summary.clients = clients;
  summary.loader_threads = input.loader.threads;
  summary.input_bound = FindInputBound(input);
  if (summary.input_bound && input.seconds >= 1) progress_.Message(summary.input_bound->text);
  if (recipe.data.on_error == "skip") summary.left_out = int64_t(job_.data.left_out.size());
  summary.emulated = Emulated(recipe.emulate);
  directory_.WriteMistakes(MistakesJson(job_.data, details.mistakes));
  directory_.WriteSummary(ToJson(summary));
  progress_.End(summary);
}

}  // namespace trireme
