// Matrix products as dense layers run them: packing included, in three directions.
#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/bench.h"
#include "cli/command.h"
#include "cli/recipe_flags.h"
#include "graph/op.h"

namespace trireme {
namespace {

constexpr Flag kFlags[] = {
    {"--sizes", "LIST", "MxNxK, separated by commas (default: some of each kind)"},
    kDeviceFlag,
    kThreadsFlag,
    kPrecisionFlag,
    kRepeatFlag,
    kBenchJsonFlag,
};
constexpr const char* kSizes =
    "256x256x256,512x512x512,1024x1024x1024,2048x2048x2048,64x200x784,256x200x784,16x1000x2048,"
    "50176x64x64,12544x512x128,3136x256x1024";

struct Sizes {
  size_t m, n, k;
};

std::vector<Sizes> ParseSizes(const std::string& list) {
  std::vector<Sizes> all;
  for (const std::string& word : Split(list, ',')) {
    std::vector<size_t> numbers;
    for (const std::string& part : Split(word, 'x')) {
      const auto number = ParseNumber<size_t>(part);
      if (!number || *number < 1 || *number > 1 << 24) break;
      numbers.push_back(*number);
    }
    if (numbers.size() != 3 || numbers[0] * numbers[1] > size_t{1} << 32 ||
        numbers[0] * numbers[2] > size_t{1} << 32 || numbers[1] * numbers[2] > size_t{1} << 32) {
      throw UsageError("--sizes must be like 1024x1024x1024 (rows, columns, depth), got {}",
                       QuoteToml(word));
    }
    all.push_back({numbers[0], numbers[1], numbers[2]});
  }
  return all;
}

// The product m x n x k as an instruction of a dense layer: which layer, and how many samples.
struct Direction {
  const char* op;
  const char* what;
  size_t Sizes::*in;  // of the layer
  size_t Sizes::*out;
  size_t Sizes::*samples;
};
constexpr Direction kDirections[] = {
    {"dense", "a b", &Sizes::k, &Sizes::n, &Sizes::m},
    {"dense_grad_input", "a b^T", &Sizes::n, &Sizes::k, &Sizes::m},
    {"dense_grad_weights", "a^T b", &Sizes::m, &Sizes::n, &Sizes::k},
};

// With parameters before the layer, or nobody needs its input gradient.
Graph LayerOf(const Direction& direction, const Sizes& sizes) {
  Builder build({.channels = int(sizes.*direction.in)});
  const ValueId x = build.Add("layer_norm", {build.input()}, {}, "before");
  const Attributes attributes{.channels = int(sizes.*direction.out), .bias = false};
  return std::move(build).Finish("softmax_cross_entropy",
                                 build.Add("dense", {x}, attributes, "layer"));
}

double Measure(const BenchEngine& engine, const Direction& direction, const Sizes& sizes,
               int repeat, PeakMeter& peak) {
  SingleSteps steps(engine, LayerOf(direction, sizes), int(sizes.*direction.samples));
  const auto& instructions = steps.program().instructions;
  const auto product = std::ranges::find_if(instructions, [&](const Instruction& i) {
    return i.op->name == std::string_view(direction.op);
  });
  TRIREME_ASSERT(product != instructions.end());
  const size_t index = size_t(product - instructions.begin());
  return MedianSeconds(repeat, peak, [&] { steps.Run(index); });
}

int Run(const Args& args, Process& process) {
  const std::vector<Sizes> sizes = ParseSizes(args.Value("--sizes").value_or(kSizes));
  const int repeat = RepeatOf(args, 9);
  const BenchEngine engine = EngineOf(args);
  const Ceiling::Measure ceiling = engine.Peak();
  BenchTable table;
  for (const Sizes& s : sizes) {
    for (const Direction& direction : kDirections) {
      PeakMeter peak(ceiling);
      const double seconds = Measure(engine, direction, s, repeat, peak);
      const double flops = 2.0 * double(s.m) * double(s.n) * double(s.k) / seconds;
      table.Add({{"what", "gemm"},
                 {"product", direction.what},
                 {"m", s.m},
                 {"n", s.n},
                 {"k", s.k},
                 {"threads", engine.threads},
                 {"precision", engine.precision_name()},
                 {"ms", 1e3 * seconds, 4},
                 {"gflops", flops * 1e-9, 1},
                 {"peak_gflops", peak.flops() * 1e-9, 1},
                 {"share_of_peak", flops / peak.flops()}});
    }
  }
  process.out.Write(table.Text(args.Has("--json")));
  return 0;
}

}  // namespace

extern const Command kBenchGemm;
const Command kBenchGemm = {
    .name = "bench gemm",
    .summary = "measure matrix products, beside the ceiling",
    .usage = "trireme bench gemm [flags]",
    .examples =
        "trireme bench gemm                              # many shapes\n"
        "trireme bench gemm --sizes 1024x1024x1024 --threads 1 --json\n",
    .flags = kFlags,
    .run = Run,
};

}  // namespace trireme
