#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "cli/args.h"
#include "engine/engines.h"
#include "flat/host_memory.h"
#include "graph/graph.h"
#include "graph/program.h"
#include "record/json.h"

// What the benchmarks share: medians, tables that are also JSON, the ceiling beside each result.

namespace trireme {

double Median(std::vector<double> values);  // of at least one

// Results, one row each: a table for people or a list of objects for scripts, with the same names.
class BenchTable {
 public:
  struct Field {
    std::string_view name;
    Json value;
    int digits = 3;  // of numbers that are not whole, in the table
  };
  void Add(std::vector<Field> row) { rows_.push_back(std::move(row)); }
  std::string Text(bool json) const;

 private:
  std::vector<std::vector<Field>> rows_;
};

// Who computes, as the flags of a benchmark say.
struct BenchEngine {
  DeviceChoice device;
  Precision precision;
  EngineOptions options;
  int threads;

  std::string precision_name() const { return std::string(NameOf(precision)); }
  Backend Make() const {
    return device.kind->make(precision, options, {.threads = threads, .number = device.number});
  }
  // What its results are compared with; UsageError where there is nothing.
  Ceiling CeilingOn(int some_threads) const;
  Ceiling::Measure Peak() const { return CeilingOn(threads).flops(precision); }
};

// A program on an engine, whose instructions are run one at a time: made for one shard of made-up
// samples, which has been computed once.
class SingleSteps {
 public:
  SingleSteps(const BenchEngine& engine, const Graph& graph, int batch);
  const Program& program() const { return *program_; }
  // UsageError of these: the engine cannot.
  void Run(size_t instruction);  // to its end
  std::vector<double> RunAll();  // in order; gives the seconds of each, by the device's clock

 private:
  void Enqueue(size_t instruction);

  const Backend backend_;
  const std::string_view name_;
  const std::shared_ptr<const Program> program_;
  const std::unique_ptr<Queue> queue_;
  const std::unique_ptr<Executable> executable_;
  const Buffer state_, summand_;
  const HostBuffer<float> samples_;
  const HostBuffer<int32_t> labels_;
  Batch batch_;
};

// Measures an engine's ceiling in turns with something else, so that both see the same noise.
class PeakMeter {
 public:
  explicit PeakMeter(Ceiling::Measure peak) : peak_(std::move(peak)) {}
  // Once more, about as long as what it stands beside takes: a short look catches a moment without
  // neighbours, or with them, where a long run has the mean of both.
  void Look(double seconds);
  double flops() const { return Median(seen_); }  // per second

 private:
  const Ceiling::Measure peak_;
  std::vector<double> seen_;
};

// The median time of a call of `run`, after one that does not count; the ceiling is measured in
// turns. Short calls are timed many at once.
double MedianSeconds(int repeat, PeakMeter& peak, FunctionRef<void()> run);

inline constexpr Flag kThreadsFlag = {"--threads", "N", "threads (default: the cores of the job)"};
inline constexpr Flag kRepeatFlag = {"--repeat", "N", "repetitions; medians are shown"};
inline constexpr Flag kBatchFlag = {"--batch", "N", "samples per step (default: 16)"};
inline constexpr Flag kSizeFlag = {"--size", "N",
                                   "width of an image in pixels (default: the model's)"};
inline constexpr Flag kWinogradFlag = {"--winograd", "HOW", "off, f2, f4 or auto (default: auto)",
                                       "engine.winograd"};
inline constexpr Flag kPrecisionFlag = {
    "--precision", "NAME", "f32, tf32, bf16 or fp16 (default: f32)", "trainer.precision"};
inline constexpr Flag kBenchJsonFlag = {"--json", "", "print JSON"};

int ThreadsOf(const Args& args);
int RepeatOf(const Args& args, int otherwise);
int BatchOf(const Args& args);
BenchEngine EngineOf(const Args& args);  // --device, --precision, --winograd, --threads

// Of all operands of an instruction: what moves if no cache helps.
double BytesOf(const Instruction& instruction, int count);

// The model that a benchmark names, at --size pixels and with the classes of its usual data.
Graph BenchModel(const Args& args);

}  // namespace trireme
