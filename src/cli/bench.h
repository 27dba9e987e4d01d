#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/team.h"
#include "cli/args.h"
#include "engine/cpu/bf16/unit.h"
#include "engine/cpu/options.h"
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

// Measures the processor's ceiling in turns with something else, so that both see the same noise.
class PeakMeter {
 public:
  // Of float32, or of bf16 with a unit.
  explicit PeakMeter(Team& team, const cpu::MatrixUnit* unit = nullptr)
      : team_(team), unit_(unit) {}
  // Once more, about as long as what it stands beside takes: a short look catches a moment without
  // neighbours, or with them, where a long run has the mean of both.
  void Look(double seconds);
  double flops() const { return Median(seen_); }  // per second

 private:
  Team& team_;
  const cpu::MatrixUnit* unit_;
  std::vector<double> seen_;
};

// The median time of a call of `run`, after one that does not count; the ceiling is measured in
// turns. Short calls are timed many at once.
double MedianSeconds(int repeat, PeakMeter& peak, FunctionRef<void()> run);

inline constexpr Flag kThreadsFlag = {"--threads", "N", "threads (default: the cores of the job)"};
inline constexpr Flag kRepeatFlag = {"--repeat", "N", "repetitions, medians are shown"};
inline constexpr Flag kBatchFlag = {"--batch", "N", "samples of a step (default: 16)"};
inline constexpr Flag kSizeFlag = {"--size", "N", "pixels across an image (default: the model's)"};
inline constexpr Flag kWinogradFlag = {"--winograd", "HOW", "off, f2, f4 or auto (default: auto)",
                                       "engine.winograd"};
inline constexpr Flag kPrecisionFlag = {"--precision", "NAME", "f32 or bf16 (default: f32)"};
inline constexpr Flag kBenchJsonFlag = {"--json", "", "print JSON"};

int ThreadsOf(const Args& args);
int RepeatOf(const Args& args, int otherwise);
int BatchOf(const Args& args);
EngineOptions EngineOf(const Args& args);         // --winograd
const cpu::MatrixUnit* UnitOf(const Args& args);  // --precision; null: f32
std::string PrecisionText(const cpu::MatrixUnit* unit);

// Of all operands of an instruction: what moves if no cache helps.
double BytesOf(const Instruction& instruction, int count);

// The model that a benchmark names, at --size pixels and with the classes of its usual data.
Graph BenchModel(const Args& args);

}  // namespace trireme
