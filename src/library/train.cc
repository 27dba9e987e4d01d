#include "trainer/train.h"

#include <atomic>
#include <csignal>
#include <exception>
#include <mutex>

#include "base/clock.h"
#include "base/files.h"
#include "base/stop_wish.h"
#include "data/given.h"
#include "launch/launcher.h"
#include "launch/transports.h"
#include "library/settings.h"
#include "record/checkpoint.h"
#include "record/checkpoint_folder.h"
#include "record/progress.h"
#include "trainer/chance_level.h"
#include "trainer/data_notes.h"
#include "trainer/prepare.h"
#include "trainer/resume_check.h"

namespace trireme::v1 {
namespace {

std::optional<double> RmseOf(const std::optional<NumberRecord>& numbers) {
  return numbers ? std::optional(numbers->rmse) : std::nullopt;
}

Epoch EpochOf(const EpochRecord& record, int64_t epochs) {
  return {.epoch = record.epoch,
          .epochs = epochs,
          .step = record.step,
          .train_loss = record.train_loss,
          .train_accuracy = record.train_accuracy,
          .validation_loss = record.validation_loss,
          .validation_accuracy = record.validation_accuracy,
          .validation_rmse = RmseOf(record.validation_numbers),
          .test_loss = record.test_loss,
          .test_accuracy = record.test_accuracy,
          .test_rmse = RmseOf(record.test_numbers),
          .learning_rate = record.lr,
          .samples_per_second = record.samples_per_second,
          .seconds = record.seconds};
}

// The functions of the caller, and its wish to stop. What one of them throws is kept, so that the
// ranks end in order; from then on none is called. Any thread.
class Caller : public StopWish {
 public:
  explicit Caller(const TrainOptions& options) : options_(options) {}

  int received() const noexcept override {
    return stopped_ || options_.stop.stop_requested() ? SIGTERM : 0;
  }

  void Message(LogLevel level, std::string_view text) {
    if (options_.on_message) Call([&] { options_.on_message(SeverityOf(level), text); });
  }

  void EpochEnded(const EpochRecord& record, int64_t epochs) {
    last_ = EpochOf(record, epochs);
    if (!options_.on_epoch) return;
    bool goes_on = true;
    Call([&] { goes_on = options_.on_epoch(last_); });
    // The last one, and a part of one, come when the run is over anyway.
    if (!goes_on && record.epoch + 1 <= double(epochs)) stopped_ = true;
  }

  const Epoch& last() const { return last_; }  // when the run is over

  void Rethrow() {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }

 private:
  template <class F>
  void Call(F&& fn) {
    if (thrown_) return;
    try {
      fn();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      thrown_ = stopped_ = true;
    }
  }

  const TrainOptions& options_;
  std::atomic<bool> stopped_ = false, thrown_ = false;
  Epoch last_;
  std::mutex mutex_;
  std::exception_ptr error_;  // guarded by mutex_
};

End EndOf(Ending ending) {
  switch (ending) {
    case Ending::kTarget:
      return End::kTarget;
    case Ending::kPatience:
      return End::kPatience;
    case Ending::kConverged:
      return End::kConverged;
    case Ending::kSignal:
      return End::kStopped;
    case Ending::kDone:
    case Ending::kTested:
      break;
  }
  return End::kDone;
}

// Of a run that was stopped: there is no summary yet.
Result StoppedResult(const RunDirectory& directory, const Job& job, const Epoch& last) {
  const int64_t steps = LinkIn(directory.checkpoints(), kLatest).value_or(0);
  return {.end = End::kStopped,
          .run = directory.path(),
          .epochs = double(steps / job.plan.steps_per_epoch()),
          .steps = steps,
          .train_loss = last.train_loss,
          .validation_loss = last.validation_loss,
          .validation_accuracy = last.validation_accuracy,
          .validation_rmse = last.validation_rmse,
          .test_loss = last.test_loss,
          .test_accuracy = last.test_accuracy,
          .test_rmse = last.test_rmse};
}

Result ResultOf(const RunDirectory& directory, const Job& job, const Outcome& outcome) {
  const Summary& summary = outcome.summary;
  return {.end = EndOf(outcome.ending),
          .run = directory.path(),
          .epochs = double(summary.steps) / double(job.plan.steps_per_epoch()),
          .steps = summary.steps,
          .train_loss = summary.train_loss,
          .validation_loss = summary.validation_loss,
          .validation_accuracy = summary.validation_accuracy,
          .validation_rmse = RmseOf(summary.validation_numbers),
          .test_loss = summary.test_loss,
          .test_accuracy = summary.test_accuracy,
          .test_rmse = RmseOf(summary.test_numbers),
          .train_seconds = summary.train_seconds,
          .parameters_sha256 = summary.parameters_sha256};
}

// A process that others have threads in must not be forked: the child would have their locks, and
// not the threads that open them.
void RefuseProcesses(const TransportOptions& transport) {
  const TransportKind* const kind = FindTransport(transport.name);
  if (kind && !kind->one_process) {
    throw trireme::UsageError(
        "transport.name = \"{}\" starts or joins other processes, which the library does not do; "
        "use \"threads\", or start the program trireme",
        transport.name);
  }
  if (!transport.hosts.empty() || !transport.meet.empty()) {
    throw trireme::UsageError(
        "transport.hosts and transport.meet join other processes, which the library does not do; "
        "unset both, or start the program trireme");
  }
}

GivenPart PartOf(const Samples& samples) {
  return {samples.values, samples.bytes, samples.labels, samples.numbers};
}

DataSet OpenMemory(const Data& data, Settings& settings) {
  DataOptions& options = settings.recipe.data;
  if (settings.sections.ByHand("data.source")) {
    throw trireme::UsageError(
        "data.source = {} and samples in memory both say what to train on; give one",
        options.source);
  }
  options.source = kGivenSource;
  return OpenGiven({.shape = {data.shape.height, data.shape.width, data.shape.channels},
                    .train = PartOf(data.train),
                    .validation = PartOf(data.validation),
                    .test = PartOf(data.test),
                    .classes = data.classes},
                   options);
}

RunDirectory OpenToResume(const std::string& run, const trireme::Recipe& now, const Log& log) {
  trireme::Recipe before;
  Sections sections;
  Bind(sections, before);
  LoadRunRecipe(sections, run);
  CheckResume(before, now);
  RunDirectory directory = RunDirectory::Resume(run);
  const std::string other = OtherBuildText(directory.last_start());
  if (!other.empty()) log.Info("resume", "{}", other);
  return directory;
}

void SayChoices(const Log& log, const Settings& settings, const Job& job, bool resumed) {
  SayLeftOut(log, job.data.left_out);
  if (!resumed) SayNotes(log, job.data.notes);
  if (!resumed && !job.data.summary.empty()) log.Info("data", "{}", job.data.summary);
  if (!job.chosen.empty()) log.Info("train", "no recipe: {}", job.chosen);
  for (const std::string& remark : OptimizerRemarks(settings.sections, job.recipe.optimizer)) {
    log.Warn("optimizer", "{}", remark);
  }
}

Result TrainFor(Caller& caller, const Recipe& given, const Data* data,
                const TrainOptions& options) {
  if (options.run.empty()) throw trireme::UsageError("TrainOptions::run names no directory");
  LogOutput output([&](LogLevel level, std::string_view text) { caller.Message(level, text); });
  const Log log(output);
  const std::unique_ptr<Settings> settings = Settings::Of(given);
  trireme::Recipe& recipe = settings->recipe;
  SettlePairs(settings->sections, recipe);
  RefuseProcesses(recipe.transport);
  std::optional<DataSet> samples;
  if (data) samples = OpenMemory(*data, *settings);
  Launcher launcher(recipe.transport, /*ranks_given=*/true, {});
  const std::string why = SettleDevice(recipe, settings->sections.IsGiven("trainer.device"));
  if (!why.empty()) log.Info("device", "auto: {} computes, because {}", recipe.trainer.device, why);

  std::optional<RunDirectory> directory;
  if (options.resume) directory.emplace(OpenToResume(options.run, recipe, log));
  const bool begun = directory && HasCheckpoint(directory->checkpoints());
  const Job job = PrepareRun({.recipe = recipe,
                              .open = settings->open,
                              .begun = begun,
                              .run = options.resume ? options.run : "",
                              .samples = std::move(samples)},
                             launcher, log);
  SayChoices(log, *settings, job, options.resume);
  const std::string& trace = job.recipe.record.trace;
  if (!trace.empty()) Replacement::Check(trace);  // it is written at the end
  if (!directory) directory.emplace(RunDirectory::Create(options.run, ConfigText(job.recipe)));

  Progress progress(ProgressStyle::kHandedOn,
                    {.line = [&](std::string_view text, const Highlight&) { output.Line(text); },
                     .live = [](std::string_view) {},
                     .width = [] { return 0; },
                     .seconds = Now,
                     .epoch = [&](const EpochRecord& record,
                                  int64_t epochs) { caller.EpochEnded(record, epochs); }});
  std::optional<Result> result;
  const auto report = [&](const Outcome& outcome) {
    if (outcome.ending == Ending::kSignal) {
      result = StoppedResult(*directory, job, caller.last());
      return;
    }
    result = ResultOf(*directory, job, outcome);
    const std::string nothing = LearnedNothing(job, outcome.summary);
    if (!nothing.empty()) log.Warn("train", "{}", nothing);
  };
  const Json start_line = StartLine("a program that trains by the library", job);
  trireme::Train(job, {.directory = &*directory,
                       .progress = progress,
                       .signals = caller,
                       .log = log,
                       .launcher = launcher,
                       .start_line = &start_line,
                       .report = report});
  return std::move(*result);
}

Result TrainOn(const Recipe& recipe, const Data* data, const TrainOptions& options) {
  Caller caller(options);
  try {
    Result result = Translated([&] { return TrainFor(caller, recipe, data, options); });
    caller.Rethrow();
    return result;
  } catch (const Error&) {
    caller.Rethrow();  // what came first
    throw;
  }
}

}  // namespace

Result Train(const Recipe& recipe, const TrainOptions& options) {
  return TrainOn(recipe, nullptr, options);
}

Result Train(const Recipe& recipe, const Data& data, const TrainOptions& options) {
  return TrainOn(recipe, &data, options);
}

}  // namespace trireme::v1
