#include "cli/bench.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "cli/bench_origin.h"
#include "flat/staging.h"
#include "graph/layout.h"
#include "graph/models/models.h"
#include "graph/program.h"
#include "trainer/job.h"

namespace trireme {
namespace {

constexpr double kShortLook = 0.01, kLongLook = 0.2;  // seconds that a look at the ceiling takes
constexpr double kShort = 0.02;                       // calls that take less are timed many at once

std::string CellText(const BenchTable::Field& field) {
  if (field.value.IsString()) return field.value.AsString();
  if (field.value.IsInt()) return fmt::format("{}", field.value.AsInt());
  return fmt::format("{:.{}f}", field.value.AsDouble(), field.digits);
}

int AtLeastOne(const Args& args, std::string_view flag, int otherwise, int most) {
  const int number = args.Number(flag, otherwise);
  if (number < 1 || number > most) {
    throw UsageError("{} must be between 1 and {}, got {}", flag, most, number);
  }
  return number;
}

// What flags and --set say.
struct Told {
  TrainerOptions trainer;
  EngineOptions engine;
  ModelOptions model;
};

Told ReadFlags(const Args& args) {
  Told told;
  Sections sections;
  sections.Add("trainer", told.trainer);
  sections.Add("engine", told.engine);
  sections.Add("model", told.model);
  told.trainer.device = HostEngine().name;  // a card is measured by its name
  args.ApplyTo(sections);
  return told;
}

}  // namespace

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string BenchTable::Text(bool json) const {
  if (json) {
    Json list = Json::Array();
    for (const auto& row : rows_) {
      Json entry = Json::Object();
      for (const Field& field : row) entry.Add(field.name, field.value);
      list.Append(WithOrigin(std::move(entry)));
    }
    return list.Text() + "\n";
  }
  std::vector<size_t> widths(rows_.empty() ? 0 : rows_[0].size());
  for (size_t i = 0; i < widths.size(); ++i) {
    widths[i] = rows_[0][i].name.size();
    for (const auto& row : rows_) widths[i] = std::max(widths[i], CellText(row[i]).size());
  }
  std::string text;
  for (size_t i = 0; i < widths.size(); ++i) {
    const bool left = rows_[0][i].value.IsString();
    text += left ? fmt::format("{:<{}}  ", rows_[0][i].name, widths[i])
                 : fmt::format("{:>{}}  ", rows_[0][i].name, widths[i]);
  }
  text += "\n";
  for (const auto& row : rows_) {
    for (size_t i = 0; i < widths.size(); ++i) {
      text += row[i].value.IsString() ? fmt::format("{:<{}}  ", CellText(row[i]), widths[i])
                                      : fmt::format("{:>{}}  ", CellText(row[i]), widths[i]);
    }
    text += "\n";
  }
  return text;
}

SingleSteps::SingleSteps(const BenchEngine& engine, const Graph& graph, int batch)
    : backend_(engine.Make()),
      name_(engine.device.kind->name),
      program_(Compile(graph, *backend_.engine, batch, Mode::kTrain, size_t{1} << 40)),
      queue_(backend_.engine->device().NewQueue()),
      executable_(backend_.engine->Load(program_, *queue_)),
      state_(backend_.engine->device(), program_->layout.state),
      summand_(backend_.engine->device(), program_->layout.summand),
      samples_(backend_.engine->device(), size_t(batch) * size_t(graph.input().size())),
      labels_(backend_.engine->device(), size_t(batch)) {
  const std::vector<float> initial = InitialState(graph, program_->layout, 1);
  flat::PutNow(*queue_, initial, state_);
  const Random random(1);
  for (size_t i = 0; i < samples_.size(); ++i) samples_[i] = float(random.Normal(i));
  batch_ = {.inputs = samples_, .labels = labels_, .count = batch};
  executable_->RunShard(batch_, state_, summand_, false, {});
  queue_->Sync();
}

void SingleSteps::Enqueue(size_t instruction) {
  if (executable_->RunInstruction(batch_, state_, summand_, int(instruction))) return;
  throw UsageError("the engine {} cannot run single operations", name_);
}

void SingleSteps::Run(size_t instruction) {
  Enqueue(instruction);
  queue_->Sync();
}

std::vector<double> SingleSteps::RunAll() {
  const size_t count = program_->instructions.size();
  std::vector<Event> marks = {queue_->Mark()};
  for (size_t i = 0; i < count; ++i) {
    Enqueue(i);
    marks.push_back(queue_->Mark());
  }
  std::vector<double> seconds;
  for (size_t i = 0; i < count; ++i) {
    seconds.push_back(marks[i + 1].FiredAt() - marks[i].FiredAt());
  }
  return seconds;
}

void PeakMeter::Look(double seconds) {
  const double length = std::clamp(seconds, kShortLook, kLongLook);
  seen_.push_back(peak_(length));
}

double MedianSeconds(int repeat, PeakMeter& peak, FunctionRef<void()> run) {
  const Stopwatch first;
  run();  // memory is touched for the first time
  run();
  const double once = std::max(1e-7, first.seconds() / 2);
  const int calls = 1 + static_cast<int>(kShort / once);
  std::vector<double> times;
  for (int i = 0; i < repeat; ++i) {
    peak.Look(calls * once);
    const Stopwatch watch;
    for (int c = 0; c < calls; ++c) run();
    times.push_back(watch.seconds() / calls);
  }
  return Median(times);
}

int ThreadsOf(const Args& args) {
  return AtLeastOne(args, "--threads", CountThreads(TrainerOptions()), 1024);
}
int RepeatOf(const Args& args, int otherwise) {
  return AtLeastOne(args, "--repeat", otherwise, 100'000);
}
int BatchOf(const Args& args) { return AtLeastOne(args, "--batch", 16, 1 << 20); }

BenchEngine EngineOf(const Args& args) {
  const Told told = ReadFlags(args);
  const DeviceChoice device = FindDevice(told.trainer.device);
  RequireDevice(device);
  return {device, ResolvePrecision(*device.kind, told.trainer.precision), told.engine,
          ThreadsOf(args)};
}

Ceiling BenchEngine::CeilingOn(int some_threads) const {
  const EngineKind& kind = *device.kind;
  if (!kind.ceiling) throw UsageError("the engine {} has no ceiling to compare with", kind.name);
  return kind.ceiling(some_threads, device.number);
}

double BytesOf(const Instruction& instruction, int count) {
  double bytes = 0;
  for (const auto* operands : {&instruction.inputs, &instruction.outputs}) {
    for (const Operand& operand : *operands) bytes += double(operand.spec.bytes(count));
  }
  for (const Range& range : instruction.parameters) bytes += 4.0 * double(range.size);
  return bytes;
}

Graph BenchModel(const Args& args) {
  const std::string name = args.Required("MODEL");
  ModelOptions options = ReadFlags(args).model;
  options.name = name;
  const std::vector<std::string> sizes = Split(name.substr(name.find(':') + 1), '-');
  const auto in = ParseNumber<int>(sizes.front()), out = ParseNumber<int>(sizes.back());
  if (name.find(':') != std::string::npos && in && out) {  // mlp:784-200-10 says it all
    return BuildModel(options, {.channels = *in}, *out);
  }
  const ModelDef& model = FindModel(name);
  Shape input = model.typical;
  input.height = input.width = AtLeastOne(args, "--size", input.height, 1 << 14);
  if (model.read) options.layers = model.read(AfterColon(name)).layers;
  return BuildModel(options, input, model.typical_classes);
}

}  // namespace trireme
