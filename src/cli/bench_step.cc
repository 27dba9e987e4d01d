// Whole steps: forward, backward and the update, without loading.
#include <algorithm>

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
#include "optimizer/updater.h"

namespace trireme {
namespace {

constexpr Flag kFlags[] = {
    kBatchFlag,    kSizeFlag,   kDeviceFlag,    kThreadsFlag, kPrecisionFlag,
    kWinogradFlag, kRepeatFlag, kBenchJsonFlag, kSetFlag,
};
constexpr Place kPlaces[] = {{"MODEL", Place::kRequired, "a model of `trireme list models`"}};

constexpr int kAtOnce = 20;  // steps without a wait, where work runs late

// One replica that trains on the same samples again and again.
class Trainee {
 public:
  Trainee(const Graph& graph, int batch, Backend backend)
      : backend_(std::move(backend)),
        device_(backend_.engine->device()),
        program_(Compile(graph, *backend_.engine, batch, Mode::kTrain, size_t{1} << 40)),
        queue_(device_.NewQueue()),
        executable_(backend_.engine->Load(program_, *queue_)),
        updater_({.lr = 1e-6}, Schedule({.lr = 1e-6}, 1, 1 << 30, batch), program_->layout,
                 device_),
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

int Run(const Args& args, Process& process) {
  const DenormalsOff denormals_off;  // as in training
  const BenchEngine engine = EngineOf(args);
  const Graph graph = BenchModel(args);
  const int batch = BatchOf(args);
  PeakMeter peak(engine.Peak());
  Trainee trainee(graph, batch, engine.Make());
  trainee.Steps(2);  // the first of a kind may be slower
  const int at_once = trainee.runs_late() ? kAtOnce : 1;
  const auto run = [&] { trainee.Steps(at_once); };
  const double seconds = MedianSeconds(RepeatOf(args, 5), peak, run) / at_once;
  // Forward, and as much for the input gradient and for the weight gradient.
  const double flops = 6 * Measure(graph).multiply_adds * batch / seconds;
  double bytes = 0;
  for (const Instruction& i : trainee.program().instructions) bytes += BytesOf(i, batch);
  BenchTable table;
  table.Add({{"what", "step"},
             {"model", args.Required("MODEL")},
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
             {"memory_mb", double(trainee.memory()) * 1e-6, 1}});
  process.out.Write(table.Text(args.Has("--json")));
  return 0;
}

}  // namespace

extern const Command kBenchStep;
const Command kBenchStep = {
    .name = "bench step",
    .summary = "measure whole training steps, beside the ceiling",
    .usage = "trireme bench step MODEL [flags]",
    .examples =
        "trireme bench step resnet18 --batch 16 --size 224 --threads 2\n"
        "trireme bench step resnet18 --batch 16 --size 224 --precision bf16\n"
        "trireme bench step mlp:784-200-10 --batch 64 --json\n"
        "trireme bench step resnet18 --batch 512 --size 32 --device cuda --set model.stem=7x7\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
