// Every layer of a model's step on its own: which of them are far from the ceiling.
#include <fmt/format.h>

#include "base/clock.h"
#include "base/random.h"
#include "cli/bench.h"
#include "cli/command.h"
#include "engine/cpu/call_list.h"
#include "engine/cpu/engine.h"
#include "flat/host.h"
#include "graph/layout.h"
#include "graph/op.h"
#include "graph/program.h"

namespace trireme {
namespace {

constexpr Flag kFlags[] = {
    kBatchFlag,     kSizeFlag,     kThreadsFlag,
    kRepeatFlag,    kWinogradFlag, {"--all", "", "also operations that are no products"},
    kBenchJsonFlag,
};
constexpr Place kPlaces[] = {{"MODEL", Place::kRequired, "a model, as in trireme list models"}};

struct Timed {
  std::vector<std::vector<double>> seconds;  // by instruction and repetition
};

// The step in order, so that each instruction finds caches as it does in training.
Timed Measure(const Program& program, const cpu::KernelTable& kernels, Team& team, Device& device,
              int repeat, PeakMeter& peak) {
  const size_t count = size_t(program.capacity);
  const Buffer activations(device, program.activation_bytes / sizeof(float) + 1);
  const Buffer scratch(device, cpu::CallList::ScratchFloats(program, kernels, team.size()));
  cpu::CallList calls(program, kernels, team,
                      reinterpret_cast<std::byte*>(activations.slice().data), scratch.slice().data);
  const std::vector<float> state = InitialState(program.graph, program.layout, 1);
  std::vector<float> summand(program.layout.summand),
      samples(count * size_t(program.graph.input().size()));
  std::vector<int32_t> labels(count);
  const Random random(1);
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = float(random.Normal(i));
  const Batch batch{.inputs = samples, .labels = labels, .count = program.capacity};
  Timed timed{std::vector<std::vector<double>>(size_t(calls.size()))};
  for (int i = -1; i < repeat; ++i) {
    peak.Look();
    for (int k = 0; k < calls.size(); ++k) {
      const Stopwatch watch;
      calls.Run(batch, state.data(), summand.data(), false, k, k + 1);
      if (i >= 0) timed.seconds[size_t(k)].push_back(watch.seconds());
    }
  }
  return timed;
}

std::string ShapeText(const Instruction& instruction) {
  const auto& operands = instruction.outputs.empty() ? instruction.inputs : instruction.outputs;
  const Attributes& a = instruction.attributes;
  return fmt::format("{} -> {} k{} s{}",
                     instruction.inputs.empty() ? "" : ToText(instruction.inputs[0].spec.shape),
                     ToText(operands.back().spec.shape), a.kernel, a.stride);
}

std::string AlgorithmText(const Instruction& instruction) {
  const int tile = instruction.attributes.winograd;
  return tile ? fmt::format("winograd f{}", tile) : "direct";
}

int Run(const Args& args, Process& process) {
  const Graph graph = BenchModel(args);
  Team team(ThreadsOf(args));
  HostDevice device(&team);
  CpuEngine engine(device, team.size(), EngineOf(args));
  const auto program = Compile(graph, engine, BatchOf(args), Mode::kTrain, size_t{1} << 40);
  PeakMeter peak(team);
  const Timed timed = Measure(*program, engine.kernels(), team, device, RepeatOf(args, 5), peak);
  std::vector<double> work;
  for (const Node& node : program->graph.nodes) {
    if (!node.op->view) work.push_back(CountWork(program->graph, node).multiply_adds);
  }
  BenchTable table;
  for (size_t i = 0; i < program->instructions.size(); ++i) {
    const Instruction& instruction = program->instructions[i];
    if (work[i] == 0 && !args.Has("--all")) continue;
    const double seconds = Median(timed.seconds[i]);
    const double flops = 2 * work[i] * program->capacity / seconds;
    table.Add({{"what", "conv"},
               {"layer", instruction.name},
               {"operation", instruction.op->name},
               {"shape", ShapeText(instruction)},
               {"algorithm", AlgorithmText(instruction)},
               {"batch", program->capacity},
               {"threads", team.size()},
               {"precision", "f32"},
               {"ms", 1e3 * seconds, 3},
               {"gflops", flops * 1e-9, 1},
               {"gb_per_s", BytesOf(instruction, program->capacity) / seconds * 1e-9, 1},
               {"share_of_peak", flops / peak.flops()}});
  }
  process.out.Write(table.Text(args.Has("--json")));
  return 0;
}

}  // namespace

extern const Command kBenchConv;
const Command kBenchConv = {
    .name = "bench conv",
    .summary = "every layer of a model's step beside the ceiling",
    .usage = "trireme bench conv MODEL [flags]",
    .examples =
        "trireme bench conv resnet18 --batch 16 --size 224\n"
        "trireme bench conv cnn --all --json              # also what is no product\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
