// Matrix products as dense layers run them: packing included, in three directions.
#include <fmt/format.h>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "cli/bench.h"
#include "cli/command.h"
#include "engine/cpu/call.h"
#include "flat/host.h"

namespace trireme {
namespace {

constexpr Flag kFlags[] = {
    {"--sizes", "LIST", "MxNxK, divided by commas (default: some of each kind)"},
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
      throw UsageError("--sizes: {} is not like 1024x1024x1024 (rows, columns, depth)",
                       QuoteToml(word));
    }
    all.push_back({numbers[0], numbers[1], numbers[2]});
  }
  return all;
}

// Memory as training has it.
Buffer Numbers(Device& device, uint64_t key, size_t size) {
  const Random random(key);
  Buffer numbers(device, size + 16);
  float* to = numbers.slice().data;
  for (size_t i = 0; i < size; ++i) to[i] = static_cast<float>(random.Uniform(i) - 0.5);
  return numbers;
}

// Each product as a dense layer: C is y of "dense", dx of "dense_grad_input", the gradient of the
// weights of "dense_grad_weights".
struct Direction {
  const char* op;
  const char* what;
};
constexpr Direction kDirections[] = {
    {"dense", "a b"}, {"dense_grad_input", "a b^T"}, {"dense_grad_weights", "a^T b"}};

double Measure(const cpu::KernelTable& kernels, std::string_view op, const Sizes& s, Team& team,
               int repeat, PeakMeter& peak) {
  HostDevice device;
  const Buffer a_buffer = Numbers(device, 1, s.m * s.k), b_buffer = Numbers(device, 2, s.k * s.n);
  const Buffer c_buffer = Numbers(device, 3, s.m * s.n);
  float *a = a_buffer.slice().data, *b = b_buffer.slice().data, *c = c_buffer.slice().data;
  const Shape of_k{.channels = int(s.k)}, of_n{.channels = int(s.n)}, of_m{.channels = int(s.m)};
  cpu::Call call;
  call.attributes.bias = false;
  call.unit = kernels.unit;
  cpu::Shard shard{.count = s.m, .state = b, .accumulate = false, .team = &team};
  if (op == "dense_grad_weights") {
    shard.count = s.k;
    shard.summand = c;
    call.inputs = {{{a, of_m}, {b, of_n}}};
    call.parameters[0] = {0, s.m * s.n};
  } else {
    call.inputs[0] = {a, of_k};
    call.outputs[0] = {c, of_n};
    call.parameters[0] = {0, s.k * s.n};
  }
  const Batch batch;
  shard.batch = &batch;
  const cpu::KernelRow& row = *kernels.Find(op);
  const Buffer scratch(device, row.scratch(call, shard.count, size_t(team.size())) + 16);
  shard.scratch = scratch.slice().data;
  return MedianSeconds(repeat, peak, [&] { row.run(call, shard); });
}

int Run(const Args& args, Process& process) {
  const std::vector<Sizes> sizes = ParseSizes(args.Value("--sizes").value_or(kSizes));
  const int repeat = RepeatOf(args, 9);
  const BenchEngine engine = EngineOf(args);
  const Ceiling::Measure ceiling = engine.Peak();
  cpu::KernelTable kernels = cpu::ChooseKernels();
  if (engine.precision == Precision::kBf16) kernels.unit = cpu::FindMatrixUnit();
  Team team(engine.threads);
  BenchTable table;
  for (const Sizes& s : sizes) {
    for (const Direction& direction : kDirections) {
      PeakMeter peak(ceiling);
      const double seconds = Measure(kernels, direction.op, s, team, repeat, peak);
      const double flops = 2.0 * double(s.m) * double(s.n) * double(s.k) / seconds;
      table.Add({{"what", "gemm"},
                 {"product", direction.what},
                 {"m", s.m},
                 {"n", s.n},
                 {"k", s.k},
                 {"threads", team.size()},
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
    .summary = "matrix products beside the ceiling",
    .usage = "trireme bench gemm [flags]",
    .examples =
        "trireme bench gemm                              # many shapes\n"
        "trireme bench gemm --sizes 1024x1024x1024 --threads 1 --json\n",
    .flags = kFlags,
    .run = Run,
};

}  // namespace trireme
