#include <fmt/core.h>

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

}  // namespace

Instruction MakeInstruction(const Node& node, const Layout& layout,
                            FunctionRef<Operand(ValueId)> place) {
  Instruction i{.op = node.op,
                .name = node.name,
                .how = node.how,
                .attributes = node.attributes,
                .backward = node.backward};
  for (const ValueId value : node.inputs) i.inputs.push_back(place(value));
  for (const ValueId value : node.outputs) i.outputs.push_back(place(value));
  for (const int index : node.parameters) i.parameters.push_back(layout.parameters[index]);
  for (const int index : node.statistics) i.statistics.push_back(layout.statistics[index]);
  for (const Node& part : node.parts) i.parts.push_back(MakeInstruction(part, layout, place));
  return i;
}

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
  if (train) {
    say(passes::ForFrozen(g));
    say(passes::FuseWithGradient(g, engine, capacity));
  }
  say(train ? passes::AddBackward(g) : passes::ForEvaluation(g));
  const Node loss = graph.loss();
  const ValueId logits = train ? loss.inputs[0] : g.loss().inputs[0];
  std::vector<ValueId> results;
  if (!train) {
    results = loss.outputs;
    results.push_back(logits);
  }
  say(passes::RemoveUnread(g));
  say(passes::Fuse(g, engine, capacity, results));
  passes::CheckKernels(g, engine);
  say(engine.Choose(g));
  say(passes::NarrowValues(g, engine));

  const passes::MemoryPlan plan = passes::PlanMemory(g, capacity, results, engine);
  say(plan.decision);
  program->activation_bytes = plan.bytes;
  const auto place = [&](ValueId value) { return OperandOf(g, plan, value); };
  for (const Node& node : g.nodes) {
    if (node.op->view) continue;
    program->instructions.push_back(MakeInstruction(node, program->layout, place));
  }
  program->logits = OperandOf(g, plan, logits);
  program->losses = OperandOf(g, plan, loss.outputs[0]);
  program->probabilities =
      loss.outputs.size() > 1 ? OperandOf(g, plan, loss.outputs[1]) : program->logits;
  if (train) {
    passes::MarkBuckets(*program);
    passes::MarkFirstReads(*program);
  }
  return program;
}

}  // namespace trireme
