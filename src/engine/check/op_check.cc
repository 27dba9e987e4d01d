#include "engine/check/op_check.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/assert.h"
#include "base/half.h"
#include "engine/check/activations.h"
#include "engine/check/compare.h"
#include "engine/ref/runner.h"

namespace trireme::check {
namespace {

constexpr float kStale = 3.5f;  // what a summand holds that is to be overwritten
constexpr uint64_t kSeed = 20240;

// Of a number to the nearest one that is held so.
double RoundingOf(Element element) {
  return element == Element::kBFloat ? 0x1p-8 : element == Element::kHalf ? 0x1p-11 : 0;
}

// Open values and those that forward made of them, rounded to float, by value.
using Values = std::vector<std::vector<double>>;

struct Sample {
  std::vector<int32_t> labels;
  std::vector<float> class_weights;
  std::vector<LabelMix> mixes;
  std::vector<float> state;
  Batch batch;
  Values values;
};

std::vector<float> MakeState(const Program& program) {
  std::vector<float> state = RandomFloats(kSeed, program.layout.state);
  // Statistics of a batch-norm: the second is a variance.
  for (size_t i = 1; i < program.layout.statistics.size(); i += 2) {
    const Range range = program.layout.statistics[i];
    for (size_t k = range.begin; k < range.end(); ++k) state[k] = 0.1f + std::fabs(state[k]);
  }
  return state;
}

// Every third value is rough, so that windows have several largest values.
std::vector<float> MakeValue(ValueId id, size_t size) {
  std::vector<float> numbers = RandomFloats(kSeed + 1 + uint64_t(id), size);
  for (size_t i = 0; i < size; i += 3) numbers[i] = std::round(numbers[i]);
  return numbers;
}

// What is held of each.
void Shorten(std::span<float> numbers, Element held) {
  for (float& x : numbers) {
    if (held == Element::kBFloat) x = std::bit_cast<float>(std::bit_cast<uint32_t>(x) >> 16 << 16);
    if (held == Element::kHalf) x = float(RoundToHalf(double(x)));
  }
}

Sample MakeSample(const OpCase& c, Element held) {
  std::vector<size_t> before;
  for (size_t i = 0; i < c.node; ++i) {
    if (!c.graph.nodes[i].backward) before.push_back(i);
  }
  const auto program = MakeProgram(c, before);
  Sample sample{.state = MakeState(*program), .values = Values(c.graph.values.size())};
  Shorten(sample.state, held);

  const int classes = c.graph.values[c.graph.nodes[0].inputs[0]].shape.channels;
  sample.labels = RandomLabels(kSeed, size_t(c.count), classes);
  if (classes > 1) sample.class_weights = RandomFloats(kSeed + 7, size_t(classes));
  if (classes > 1) sample.mixes = RandomMixes(kSeed + 8, size_t(c.count), classes);
  sample.batch = {.labels = sample.labels,
                  .count = c.count,
                  .mixes = sample.mixes,
                  .class_weights = sample.class_weights,
                  .loss_scale = 0.125f,
                  .statistics_scale = 0.5f,
                  .random_key = 77,
                  .vote = 1,
                  .first_position = 1001};

  ref::Runner runner(*program);
  std::vector<bool> made(c.graph.values.size());
  for (const Node& node : c.graph.nodes) {
    for (const ValueId value : node.outputs) made[value] = true;
  }
  for (size_t i = 1; i < made.size(); ++i) {
    const ValueSpec& spec = c.graph.values[i];
    if (made[i]) continue;
    const size_t size = size_t(spec.shape.size() * (spec.per_sample ? c.count : 1));
    std::vector<float> numbers = MakeValue(ValueId(i), size);
    Shorten(numbers, held);
    runner.Set(ValueId(i), Widen(numbers));
  }
  std::vector<double> summand(program->layout.summand);
  runner.Run(sample.batch, Widen(sample.state), summand, false);
  for (size_t i = 1; i < made.size(); ++i) {
    std::vector<float> numbers(runner.value(ValueId(i)).begin(), runner.value(ValueId(i)).end());
    Shorten(numbers, held);
    sample.values[i] = Widen(numbers);
  }
  return sample;
}

// The ranges of a summand that an instruction writes, with what they are.
struct Stretch {
  const char* what;
  Range range;
};
void AddWritten(const Instruction& instruction, const Layout& layout, std::vector<Stretch>& all) {
  const OpDef& op = *instruction.op;
  if (op.parts.size() > 0) {
    for (const Instruction& part : instruction.parts) AddWritten(part, layout, all);
  }
  if (op.writes_gradients) {
    for (const Range& range : instruction.parameters) all.push_back({"gradient", range});
  }
  if (op.name == std::string_view("batch_norm")) {
    for (const Range& range : instruction.statistics) all.push_back({"statistic", range});
  }
  if (op.name == std::string_view("tally")) {
    all.push_back({"tally", {layout.loss(), Layout::kStepMetrics}});
  }
}

testing::AssertionResult NothingElseTouched(const OpCase& c, const Program& program,
                                            std::vector<std::byte> before,
                                            std::span<const std::byte> after) {
  for (const Operand& output : program.instructions[0].outputs) {
    const auto may_change = after.subspan(output.offset, size_t(output.spec.bytes(c.capacity)));
    std::ranges::copy(may_change, before.begin() + std::ptrdiff_t(output.offset));
  }
  const auto [at, _] = std::ranges::mismatch(before, after);
  if (at == before.end()) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "byte " << at - before.begin() << " of the activations changed";
}

// What one run of the operation is to leave.
struct Want {
  bool accumulate;
  std::vector<float> before;    // the summand, before the run
  std::vector<double> summand;  // after it
  Values outputs;               // in their order
};

Want Judge(const OpCase& c, const Sample& sample, bool accumulate) {
  const auto program = MakeProgram(c, {c.node});
  const Instruction& instruction = program->instructions[0];
  ref::Runner judge(*program);
  for (const Operand& input : instruction.inputs) {
    judge.Set(input.value, sample.values[input.value]);
  }
  Want want{.accumulate = accumulate,
            .before = accumulate ? RandomFloats(kSeed - 1, program->layout.summand)
                                 : std::vector<float>(program->layout.summand, kStale)};
  want.summand = Widen(want.before);
  judge.Run(sample.batch, Widen(sample.state), want.summand, accumulate);
  for (const Operand& output : instruction.outputs) {
    want.outputs.push_back(judge.value(output.value));
  }
  return want;
}

testing::AssertionResult RunOnce(OpRunner& runner, const OpCase& c, const Sample& sample,
                                 const Want& want, double tolerance) {
  const auto program = MakeProgram(c, {c.node});
  const Instruction& instruction = program->instructions[0];
  Activations activations(program->activation_bytes);
  for (const Operand& input : instruction.inputs) {
    activations.Put(input, sample.values[input.value]);
  }
  std::vector<float> summand = want.before;
  std::vector<std::byte> before(activations.bytes().begin(), activations.bytes().end());
  runner.Run(program, sample.batch, activations.bytes(), sample.state, summand, want.accumulate);

  std::vector<Stretch> written;
  AddWritten(instruction, program->layout, written);
  for (const Stretch& s : written) {
    const auto result =
        Near(s.what, std::span(summand).subspan(s.range.begin, s.range.size),
             std::span(want.summand).subspan(s.range.begin, s.range.size), tolerance);
    if (!result) return result;
  }
  if (c.count == 0) return testing::AssertionSuccess();
  for (size_t k = 0; k < instruction.outputs.size(); ++k) {
    const Operand& output = instruction.outputs[k];
    const std::vector<double>& numbers = want.outputs[k];
    const auto result =
        Near(instruction.op->outputs.begin()[k], activations.Get(output, numbers.size()), numbers,
             tolerance + RoundingOf(output.spec.element));
    if (!result) return result;
  }
  return NothingElseTouched(c, *program, std::move(before), activations.bytes());
}

}  // namespace

struct Judgement::Facts {
  const OpCase judged;
  const Sample sample;
  const Want wants[2];
  Facts(const OpCase& c, Element held)
      : judged(c),
        sample(MakeSample(c, held)),
        wants{Judge(c, sample, false), Judge(c, sample, true)} {}
};

Judgement::Judgement(const OpCase& c, Element held)
    : facts_(std::make_unique<const Facts>(c, held)) {}

Judgement::~Judgement() = default;

testing::AssertionResult Judgement::Check(OpRunner& runner, double tolerance) const {
  return Check(runner, facts_->judged, tolerance);
}

testing::AssertionResult Judgement::Check(OpRunner& runner, const OpCase& alike,
                                          double tolerance) const {
  TRIREME_ASSERT(alike.node == facts_->judged.node && alike.count == facts_->judged.count);
  // What a chain keeps is rounded before its next part reads it.
  const bool keeps = alike.graph.nodes[alike.node].op->keeps >= 0;
  for (const Want& judged : facts_->wants) {
    const Want want = keeps ? Judge(alike, facts_->sample, judged.accumulate) : judged;
    auto result = RunOnce(runner, alike, facts_->sample, want, tolerance);
    if (!result) {
      return result << "\n  in " << alike.text << (want.accumulate ? ", accumulating" : "");
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace trireme::check
