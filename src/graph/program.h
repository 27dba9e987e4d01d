#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "flat/layout.h"
#include "graph/graph.h"

namespace trireme {

class Engine;

enum class Mode { kTrain, kEvaluate };

// Where a value lies while a program runs.
struct Operand {
  ValueId value = 0;
  ValueSpec spec;
  bool is_input = false;  // the batch's samples, handed over with each run
  size_t offset = 0;      // bytes from the start of the activations, for programs' full capacity
};

struct Instruction {
  const OpDef* op = nullptr;
  std::string name;  // of the layer
  std::string how;   // see Node
  Attributes attributes;
  std::vector<Operand> inputs, outputs;
  std::vector<Range> parameters;  // floats from the start of a state or summand
  std::vector<Range> statistics;  // likewise
  bool backward = false;
  std::vector<int> finishes;       // buckets that are final, with all before them, after this
  std::vector<int> first_reads;    // buckets of the state that no instruction before it reads
  std::vector<Instruction> parts;  // see Node; values between two parts have no offset
};

// The instruction that computes a node; `place` says where its values lie.
Instruction MakeInstruction(const Node& node, const Layout& layout,
                            FunctionRef<Operand(ValueId)> place);

// The ranges of a summand to which an instruction, or a part of it, writes gradients.
std::vector<Range> WrittenGradients(const Instruction& instruction);

// A graph compiled for an engine and a capacity: instructions and a memory plan.
struct Program {
  Mode mode = Mode::kTrain;
  int capacity = 0;  // samples of a shard, at most
  Graph graph;       // after all passes
  Layout layout;
  std::vector<Bucket> buckets;
  std::vector<Instruction> instructions;
  size_t activation_bytes = 0;
  Operand logits, losses;
  Operand probabilities;               // == logits where the loss has no softmax
  std::vector<std::string> decisions;  // what each pass decided, for --dry-run
};

// Runs the passes of graph/passes in their fixed order (graph/passes/compile.cc).
// Throws Error when the engine lacks a kernel.
std::shared_ptr<const Program> Compile(const Graph& graph, const Engine& engine, int capacity,
                                       Mode mode, size_t bucket_floats);

// The plan as text: operations after fusion, bytes, parameters, buckets.
std::string Describe(const Program& program);
// The layers as a model's file has them, before any pass, with their shapes.
std::string DescribeLayers(const Graph& graph);

}  // namespace trireme
