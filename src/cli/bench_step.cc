// Whole steps: forward, backward and the update, without loading.
#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/denormals.h"
#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "cli/bench.h"
#include "cli/command.h"
#include "cli/recipe_flags.h"
#include "flat/staging.h"
#include "graph/layout.h"
#include "graph/models/models.h"
#include "graph/program.h"
#include "model/saved_model.h"
#include "optimizer/updater.h"
#include "report/run_reader.h"
#include "trainer/job.h"

namespace trireme {
namespace {

constexpr Flag kFlags[] = {
    kBatchFlag,
    kSizeFlag,
    {"--run", "RUN",
     "measure the steps of a run, without its data, and show its epochs' share of that speed"},
    kDeviceFlag,
    kThreadsFlag,
    kPrecisionFlag,
    kWinogradFlag,
    kRepeatFlag,
    kBenchJsonFlag,
    kSetFlag,
};
constexpr Place kPlaces[] = {
    {"MODEL", Place::kOptional, "a model of `trireme list models`; none with --run"}};

constexpr int kAtOnce = 20;  // steps without a wait, where work runs late

// One replica that trains on the same samples again and again.
class Trainee {
 public:
  Trainee(const Graph& graph, int batch, Backend backend, Precision precision)
      : backend_(std::move(backend)),
        device_(backend_.engine->device()),
        program_(Compile(graph, *backend_.engine, batch, Mode::kTrain, size_t{1} << 40)),
        queue_(device_.NewQueue()),
        executable_(backend_.engine->Load(program_, *queue_)),
        updater_({.lr = 1e-6, .scales_loss = precision == Precision::kFp16},
                 Schedule({.lr = 1e-6}, 1, 1 << 30, batch), program_->layout, device_),
        state_(device_, program_->layout.state),
        summand_(device_, program_->layout.summand),
        samples_(device_, size_t(batch) * size_t(graph.input().size())),
        labels_(device_, size_t(batch)) {
    const std::vector<float> initial = InitialState(graph, program_->layout, 1);
    flat::PutNow(*queue_, initial, state_);
    const Random random(1);
    for (size_t i = 0; i < samples_.size(); ++i) samples_[i] = float(random.Normal(i));
    for (size_t i = 0; i < labels_.size(); ++i) {
      labels_[i] = int32_t(random.Bits(i) % uint64_t(graph.num_classes()));
    }
  }

  void Step() {
    const Slice state = state_, summand = summand_;
    const int batch = program_->capacity;
    std::span<const OuterProduct> unwritten;
    executable_->RunShard({.inputs = samples_,
                           .labels = labels_,
                           .count = batch,
                           .loss_scale = 1.0f / float(batch),
                           .gradient_scale = updater_.loss_scale(),
                           .unwritten = &unwritten},
                          state, summand, false, {});
    updater_.Apply(*queue_, step_++, {summand, unwritten}, state);
  }

  // As training does: where work runs late, the host is a step ahead.
  void Steps(int count) {
    for (int i = 0; i < count; ++i) Step();
    queue_->Sync();
  }

  bool runs_late() const { return !device_.host_visible(); }
  size_t memory() const { return device_.host_visible() ? 0 : device_.allocated_bytes(); }

  const Program& program() const { return *program_; }

 private:
  const Backend backend_;
  Device& device_;
  const std::shared_ptr<const Program> program_;
  const std::unique_ptr<Queue> queue_;
  const std::unique_ptr<Executable> executable_;
  Updater updater_;
  const Buffer state_, summand_;
  const HostBuffer<float> samples_;
  const HostBuffer<int32_t> labels_;
  int64_t step_ = 0;
};

// Whose steps.
struct StepSubject {
  std::string name;
  Graph graph;
  int batch;
  BenchEngine engine;
  double trained = 0;  // samples per second of a run's epochs, for each rank; 0: of no run
};

// What the epochs of a run say.
struct Epochs {
  double speed = 0;     // samples per second
  int64_t samples = 0;  // of one
};
Epochs EpochsOf(const std::string& run) {
  std::vector<double> speeds;
  Epochs epochs;
  for (const MetricsLine& line : ReadRun(run).epochs) {
    if (std::isfinite(line.samples_per_second)) speeds.push_back(line.samples_per_second);
    if (line.epoch > 0 && line.samples > 0)
      epochs.samples = std::llround(line.samples / line.epoch);
  }
  if (speeds.empty() || epochs.samples < 1) throw Error("{} has no epoch yet", run);
  if (speeds.size() > 1) speeds.erase(speeds.begin());  // it holds what happens once
  epochs.speed = Median(speeds);
  return epochs;
}

StepSubject StepSubjectOf(const Args& args, const Log& log) {
  const auto run = args.Value("--run");
  const auto model = args.Optional("MODEL");
  if (!run) {
    if (!model) throw UsageError("MODEL is missing, or --run RUN");
    return {*model, BenchModel(args), BatchOf(args), EngineOf(args)};
  }
  if (model || args.Has("--batch") || args.Has("--size")) {
    throw UsageError(
        "--run {} says the model, its batch and its size; remove MODEL, --batch, "
        "--size",
        *run);
  }
  SavedModel saved = LoadSavedModel(*run, log);
  Sections sections;
  Bind(sections, saved.recipe);
  args.ApplyTo(sections);
  const Recipe& recipe = saved.recipe;
  const DeviceChoice device = FindDevice(recipe.trainer.device);
  RequireDevice(device);
  EngineOptions options = recipe.engine;
  options.measure = options.measure && !recipe.trainer.deterministic;
  const Epochs epochs = EpochsOf(*run);
  const int workers = ChooseStrategy(recipe).workers();
  const int64_t batch = GlobalBatch(recipe.trainer, workers, epochs.samples);
  const int shards = std::max(1, recipe.trainer.shards);
  return {recipe.model.name,
          std::move(saved.graph),
          int((batch + shards - 1) / shards),
          {device, ResolvePrecision(*device.kind, recipe.trainer.precision), options,
           args.Has("--threads") ? ThreadsOf(args) : CountThreads(recipe.trainer)},
          epochs.speed / workers};
}

int Run(const Args& args, Process& process) {
  const DenormalsOff denormals_off;  // as in training
  const StepSubject subject = StepSubjectOf(args, Log(process.log));
  const BenchEngine& engine = subject.engine;
  const Graph& graph = subject.graph;
  const int batch = subject.batch;
  PeakMeter peak(engine.Peak());
  Trainee trainee(graph, batch, engine.Make(), engine.precision);
  trainee.Steps(2);  // the first of a kind may be slower
  const int at_once = trainee.runs_late() ? kAtOnce : 1;
  const auto run = [&] { trainee.Steps(at_once); };
  const double seconds = MedianSeconds(RepeatOf(args, 5), peak, run) / at_once;
  // Forward, and as much for the input gradient and for the weight gradient.
  const double flops = 6 * Measure(graph).multiply_adds * batch / seconds;
  double bytes = 0;
  for (const Instruction& i : trainee.program().instructions) bytes += BytesOf(i, batch);
  BenchTable table;
  std::vector<BenchTable::Field> row = {{"what", "step"},
                                        {"model", subject.name},
                                        {"batch", batch},
                                        {"size", graph.input().height},
                                        {"threads", engine.threads},
                                        {"precision", engine.precision_name()},
                                        {"ms", 1e3 * seconds, seconds < 1e-3 ? 5 : 2},
                                        {"images_per_s", batch / seconds, 2},
                                        {"gflops", flops * 1e-9, 1},
                                        {"peak_gflops", peak.flops() * 1e-9, 1},
                                        {"share_of_peak", flops / peak.flops()},
                                        {"moved_mb", bytes * 1e-6, 1},
                                        {"gb_per_s", bytes / seconds * 1e-9, 1},
                                        {"memory_mb", double(trainee.memory()) * 1e-6, 1}};
  if (subject.trained > 0) {
    row.push_back({"trained_per_s", subject.trained, 2});
    row.push_back({"share_of_step", subject.trained * seconds / batch});
  }
  table.Add(std::move(row));
  process.out.Write(table.Text(args.Has("--json")));
  return 0;
}

}  // namespace

extern const Command kBenchStep;
const Command kBenchStep = {
    .name = "bench step",
    .summary = "measure whole training steps, beside the ceiling",
    .usage = "trireme bench step MODEL|--run RUN [flags]",
    .examples =
        "trireme bench step resnet18 --batch 16 --size 224 --threads 2\n"
        "trireme bench step resnet18 --batch 16 --size 224 --precision bf16\n"
        "trireme bench step mlp:784-200-10 --batch 64 --json\n"
        "trireme bench step resnet18 --batch 512 --size 32 --device cuda --set model.stem=7x7\n"
        "trireme bench step --run runs/a                     # beside what its training reached\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
