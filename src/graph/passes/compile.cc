#include <fmt/core.h>

#include <algorithm>

#include "base/assert.h"
#include "graph/layout.h"
#include "graph/op.h"
#include "graph/passes/passes.h"
#include "graph/program.h"

namespace trireme {
namespace {

Operand OperandOf(const Graph& graph, const passes::MemoryPlan& plan, ValueId value) {
  return {.value = value,
          .spec = graph.values[value],
          .is_input = plan.is_input[value],
          .offset = plan.offsets[value]};
}

std::vector<Instruction> Emit(const Graph& graph, const passes::MemoryPlan& plan,
                              const Layout& layout) {
  std::vector<Instruction> instructions;
  for (const Node& node : graph.nodes) {
    if (node.op->view) continue;
    Instruction& i = instructions.emplace_back();
    i.op = node.op;
    i.name = node.name;
    i.how = node.how;
    i.attributes = node.attributes;
    i.backward = node.backward;
    for (const ValueId value : node.inputs) i.inputs.push_back(OperandOf(graph, plan, value));
    for (const ValueId value : node.outputs) i.outputs.push_back(OperandOf(graph, plan, value));
    for (const int index : node.parameters) i.parameters.push_back(layout.parameters[index]);
    for (const int index : node.statistics) i.statistics.push_back(layout.statistics[index]);
  }
  return instructions;
}

bool Overlap(const Range& range, const Bucket& bucket) {
  return range.begin < bucket.range.end() && range.end() > bucket.range.begin;
}

// Marks the instruction after which each bucket of weights is final; the tail is final at the end.
void MarkBuckets(Program& program) {
  int last_marked = -1;
  for (const Bucket& bucket : program.buckets) {
    if (bucket.range.begin >= program.layout.weights) continue;
    int last = -1;
    for (size_t i = 0; i < program.instructions.size(); ++i) {
      const Instruction& instruction = program.instructions[i];
      if (!instruction.op->writes_gradients) continue;
      for (const Range& range : instruction.parameters) {
        if (Overlap(range, bucket)) last = int(i);
      }
    }
    TRIREME_ASSERT(last > last_marked);  // buckets end between layers, in backward's order
    program.instructions[last].finishes = bucket.index;
    last_marked = last;
  }
}

// Marks the instruction before which each bucket of weights or statistics must be there.
void MarkFirstReads(Program& program) {
  for (const Bucket& bucket : program.buckets) {
    const auto overlaps = [&](const Range& range) { return Overlap(range, bucket); };
    const auto reader = std::ranges::find_if(program.instructions, [&](const Instruction& i) {
      return std::ranges::any_of(i.parameters, overlaps) ||
             std::ranges::any_of(i.statistics, overlaps);
    });
    if (reader == program.instructions.end()) continue;
    TRIREME_ASSERT(!reader->backward);  // gradients are of what forward has read
    reader->first_reads.push_back(bucket.index);
  }
}

}  // namespace

std::shared_ptr<const Program> Compile(const Graph& graph, const Engine& engine, int capacity,
                                       Mode mode, size_t bucket_floats) {
  auto program = std::make_shared<Program>();
  program->mode = mode;
  program->capacity = capacity;
  program->graph = graph;
  program->layout = LayOut(graph);
  program->buckets = CutBuckets(program->layout, bucket_floats);
  Graph& g = program->graph;
  const bool train = mode == Mode::kTrain;
  const auto say = [&](std::string decision) {
    if (!decision.empty()) program->decisions.push_back(std::move(decision));
  };
  if (train) say(passes::FuseWithGradient(g, engine));
  say(train ? passes::AddBackward(g) : passes::ForEvaluation(g));
  const Node loss = graph.loss();
  const ValueId logits = train ? loss.inputs[0] : g.loss().inputs[0];
  say(passes::RemoveUnread(g));
  say(passes::Fuse(g, engine));
  passes::CheckKernels(g, engine);
  say(engine.Choose(g));
  say(passes::NarrowValues(g, engine));

  std::vector<ValueId> results;
  if (!train) {
    results = loss.outputs;
    results.push_back(logits);
  }
  const passes::MemoryPlan plan = passes::PlanMemory(g, capacity, results, engine.alignment());
  say(plan.decision);
  program->activation_bytes = plan.bytes;
  program->instructions = Emit(g, plan, program->layout);
  program->logits = OperandOf(g, plan, logits);
  program->losses = OperandOf(g, plan, loss.outputs[0]);
  program->probabilities =
      loss.outputs.size() > 1 ? OperandOf(g, plan, loss.outputs[1]) : program->logits;
  if (train) {
    MarkBuckets(*program);
    MarkFirstReads(*program);
  }
  return program;
}

}  // namespace trireme
