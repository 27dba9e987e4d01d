// Every layer of a model's step on its own: which of them are far from the ceiling.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "base/denormals.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/bench.h"
#include "cli/command.h"
#include "cli/recipe_flags.h"
#include "graph/op.h"
#include "graph/program.h"

namespace trireme {
namespace {

constexpr Flag kFlags[] = {
    kBatchFlag,
    kSizeFlag,
    kDeviceFlag,
    kThreadsFlag,
    kRepeatFlag,
    kPrecisionFlag,
    kWinogradFlag,
    {"--all", "", "also show operations that are not matrix products"},
    kBenchJsonFlag,
    kSetFlag,
    {"--by", "WHAT",
     "one row for each layer, or for each kind of operation: layer or op (default: layer)"},
};
constexpr Place kPlaces[] = {{"MODEL", Place::kRequired, "a model of `trireme list models`"}};

// Seconds by instruction and repetition. The step in order, so that each instruction finds caches
// as it does in training.
std::vector<std::vector<double>> Measure(SingleSteps& steps, int repeat, PeakMeter& peak) {
  std::vector<std::vector<double>> seconds(steps.program().instructions.size());
  double step = 0;  // seconds of the last one
  for (int i = -1; i < repeat; ++i) {
    peak.Look(step);
    const std::vector<double> once = steps.RunAll();
    for (size_t k = 0; i >= 0 && k < seconds.size(); ++k) seconds[k].push_back(once[k]);
    step = std::accumulate(once.begin(), once.end(), 0.0);
  }
  return seconds;
}

std::string ShapeText(const Instruction& instruction) {
  const auto& operands = instruction.outputs.empty() ? instruction.inputs : instruction.outputs;
  const Attributes& a = instruction.attributes;
  return fmt::format("{} -> {} k{} s{}",
                     instruction.inputs.empty() ? "" : ToText(instruction.inputs[0].spec.shape),
                     ToText(operands.back().spec.shape), a.kernel, a.stride);
}

std::string AlgorithmText(const Instruction& instruction) {
  return instruction.how.empty() ? "direct" : instruction.how;
}

// One instruction's row, or the sum of all of a kind.
struct Measured {
  double seconds = 0, multiply_adds = 0, bytes = 0;  // of the whole batch
  int count = 0;
};

BenchTable TableByOp(const Program& program, std::span<const Measured> measured, int threads,
                     const PeakMeter& peak) {
  std::map<std::string, Measured> kinds;
  double all = 0;
  for (size_t i = 0; i < measured.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    std::string kind = instruction.op->name;
    if (measured[i].multiply_adds > 0) {
      const Attributes& a = instruction.attributes;
      kind += fmt::format(" {}x{}/{} {}", a.kernel, a.kernel, a.stride, AlgorithmText(instruction));
    }
    Measured& sum = kinds[kind];
    sum.seconds += measured[i].seconds;
    sum.multiply_adds += measured[i].multiply_adds;
    sum.bytes += measured[i].bytes;
    ++sum.count;
    all += measured[i].seconds;
  }
  std::vector<std::pair<std::string, Measured>> rows(kinds.begin(), kinds.end());
  std::ranges::stable_sort(rows, std::greater(),
                           [](const auto& row) { return row.second.seconds; });
  BenchTable table;
  for (const auto& [kind, sum] : rows) {
    const double flops = 2 * sum.multiply_adds / sum.seconds;
    table.Add({{"what", "operations"},
               {"operation", kind},
               {"count", sum.count},
               {"batch", program.capacity},
               {"threads", threads},
               {"ms", 1e3 * sum.seconds, 3},
               {"share_of_time", sum.seconds / all},
               {"gflops", flops * 1e-9, 1},
               {"share_of_peak", flops / peak.flops()},
               {"moved_mb", sum.bytes * 1e-6, 1},
               {"gb_per_s", sum.bytes / sum.seconds * 1e-9, 1}});
  }
  return table;
}

int Run(const Args& args, Process& process) {
  const std::string by = args.Value("--by").value_or("layer");
  if (by != "layer" && by != "op") {
    throw UsageError("--by must be layer or op, got {}", QuoteToml(by));
  }
  const DenormalsOff denormals_off;  // as in training
  const BenchEngine engine = EngineOf(args);
  PeakMeter peak(engine.Peak());
  SingleSteps steps(engine, BenchModel(args), BatchOf(args));
  const Program& program = steps.program();
  const auto seconds = Measure(steps, RepeatOf(args, 5), peak);
  std::vector<Measured> measured;
  for (const Node& node : program.graph.nodes) {
    if (node.op->view) continue;
    const size_t i = measured.size();
    measured.push_back({Median(seconds[i]),
                        CountWork(program.graph, node).multiply_adds * program.capacity,
                        BytesOf(program.instructions[i], program.capacity), 1});
  }
  BenchTable table;
  if (by == "op") table = TableByOp(program, measured, engine.threads, peak);
  for (size_t i = 0; by == "layer" && i < measured.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    const Measured& m = measured[i];
    if (m.multiply_adds == 0 && !args.Has("--all")) continue;
    const double flops = 2 * m.multiply_adds / m.seconds;
    table.Add({{"what", "conv"},
               {"layer", instruction.name},
               {"operation", instruction.op->name},
               {"shape", ShapeText(instruction)},
               {"algorithm", AlgorithmText(instruction)},
               {"batch", program.capacity},
               {"threads", engine.threads},
               {"precision", engine.precision_name()},
               {"ms", 1e3 * m.seconds, 3},
               {"gflops", flops * 1e-9, 1},
               {"gb_per_s", m.bytes / m.seconds * 1e-9, 1},
               {"share_of_peak", flops / peak.flops()}});
  }
  process.out.Write(table.Text(args.Has("--json")));
  return 0;
}

}  // namespace

extern const Command kBenchConv;
const Command kBenchConv = {
    .name = "bench conv",
    .summary = "measure every layer of a model's step, beside the ceiling",
    .usage = "trireme bench conv MODEL [flags]",
    .examples =
        "trireme bench conv resnet18 --batch 16 --size 224\n"
        "trireme bench conv cnn --all --json              # also operations that are not products\n"
        "trireme bench conv resnet50 --by op              # where the time of a step goes\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
