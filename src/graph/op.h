#pragma once
#include <array>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace trireme {

struct OpDef;

// Work of one node for one sample.
struct Cost {
  double multiply_adds = 0;  // of products; the rest is bound by its bytes
  double bytes_read = 0, bytes_written = 0;
};

// What an operation makes and owns, for given inputs. Names of parameters are short ("weight"); the
// builder puts the layer's name before them.
struct Signature {
  std::vector<ValueSpec> outputs;
  std::vector<ParameterSpec> parameters;
  std::vector<ParameterSpec> statistics;
};

// The hand of a gradient rule: it reads the forward node and adds backward nodes.
class GradientBuilder {
 public:
  GradientBuilder(Graph& graph, const Node& forward, ValueId d_output)
      : graph_(graph), forward_(forward), d_output_(d_output) {}

  ValueId input(int i = 0) const { return forward_.inputs[i]; }
  ValueId output(int i = 0) const { return forward_.outputs[i]; }
  ValueId d_output() const { return d_output_; }  // gradient of output 0
  ValueSpec spec(ValueId value) const { return graph_.values[value]; }
  const Node& part(int i) const { return forward_.parts[i]; }  // of a fused operation

  // Adds a backward node with the attributes, parameters and statistics of the forward node, or of
  // one part of it; returns its outputs (none: it only writes gradients of parameters).
  std::vector<ValueId> Add(std::string_view op, std::vector<ValueId> inputs,
                           const std::vector<ValueSpec>& outputs, int part = kWhole);
  std::vector<ValueId> Add(const OpDef& op, std::vector<ValueId> inputs,
                           const std::vector<ValueSpec>& outputs, int part = kWhole);

  // Does a gradient of this input help anyone? Only if parameters that are trained stand before it:
  // the data need none, however they were reshaped, nor does what frozen layers make.
  bool Needs(int input) const;
  void Set(int input, ValueId gradient) { gradients[input] = gradient; }

  std::map<int, ValueId> gradients;  // by input index of the forward node

 private:
  static constexpr int kWhole = -1;
  Graph& graph_;
  Node forward_;  // a copy: adding nodes moves the original
  ValueId d_output_;
};

// A few names, kept by value: the array behind a std::initializer_list would be gone.
class NameList {
 public:
  constexpr NameList(std::initializer_list<const char*> names) {
    for (const char* name : names) names_[size_++] = name;
  }
  constexpr const char* const* begin() const { return names_.data(); }
  constexpr const char* const* end() const { return names_.data() + size_; }
  constexpr size_t size() const { return size_; }

 private:
  std::array<const char*, 8> names_ = {};
  size_t size_ = 0;
};

// One operation: what it is. How it is computed stands in the engines' kernel files.
struct OpDef {
  const char* name;
  const char* summary;                       // one line for `trireme list operations`
  NameList inputs = {"x"}, outputs = {"y"};  // their names, in order

  // Forward operations: outputs and parameters from inputs. Throws Error when they do not fit.
  // Null for backward operations, whose rule states the outputs, and for fused ones.
  Signature (*infer)(std::span<const ValueSpec> inputs, const Attributes&) = nullptr;
  Cost (*cost)(const Graph&, const Node&) = nullptr;
  // Null: not differentiable (backward operations, tally). Losses are called without d_output.
  void (*gradient)(GradientBuilder&) = nullptr;

  bool view = false;      // the output is the input's memory under another shape
  unsigned in_place = 0;  // bit i: output 0 may overwrite input i, if it is not read later
  // Backward: writes its parameters' stretch of the summand. Fused ones: as their parts do.
  bool writes_gradients = false;
  // In evaluation: another operation of the same form; "" removes it; null leaves it.
  const char* evaluate_as = nullptr;
  // A fused operation: the chain that it stands for, of any length. Its inputs are those of the
  // parts in order, without the results inside; its outputs those of the last part, then what the
  // parts before it make beside their first output.
  NameList parts = {};
  // The part whose first output others may read beside the next part, after it: that is the last
  // output of the fused operation. -1: none.
  int keeps = -1;
};

// The one list of operations (graph/ops/all_ops.cc).
std::span<const OpDef* const> AllOps();
const OpDef& FindOp(std::string_view name);  // asserts that it exists

Cost CountWork(const Graph& graph, const Node& node);  // op.cost, or the parts' products

// `docs/operations.md`: a table of all operations.
std::string OperationsPage();

}  // namespace trireme
