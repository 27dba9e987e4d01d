#pragma once
#include <fmt/core.h>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/onnx/onnx_layers.h"
#include "graph/onnx/token_view.h"

namespace trireme {

// Why a node cannot be said in our operations. Caught where nodes are read, one after the other.
struct NodeRefusal {
  std::string why;
};
template <class... Args>
[[noreturn]] void RefuseNode(fmt::format_string<Args...> text, Args&&... args) {
  throw NodeRefusal{fmt::format(text, std::forward<Args>(args)...)};
}
// Reads what a refused node would have made: nothing more can be said about it.
struct NodeSkipped {};

// A number in a shape: one that is known, or so many times the number of samples.
struct OnnxNumber {
  int64_t value = 0;
  bool samples = false;
  bool operator==(const OnnxNumber&) const = default;
};

// What a name of the file stands for.
struct OnnxOperand {
  enum class Kind {
    kUnknown,
    kSecond,  // what a node makes beside its first result
    kData,
    kTensor,
    kNumbers,
    kReal,    // a number that is computed of constants
    kView,    // kData in an order that only transformers have: token_rules.cc
    kScores,  // products of queries and keys
    kErf,     // of kData or kView
  };
  Kind kind = Kind::kUnknown;
  bool flows =
      false;  // kUnknown: it is computed of the network's input, and not of its shape alone

  // kData: what flows through the network.
  int value = 0;                 // OnnxLayer::inputs
  std::vector<int64_t> extents;  // behind the samples: channels, height, width; or a row
  Shape flattened;               // of a row: the image whose values it holds
  bool in_order = false;         // of a row: parameters behind it take ONNX's order themselves
  Shape token_rows;              // in_order, of tokens: it has tokens where an image has channels
  int step_h = 1, step_w = 1;    // a slice takes only these pixels, and nothing is done yet
  const OnnxNode* softmax = nullptr;  // only the network's end may be one
  std::vector<double> scale, shift;   // value 0: what was done to the input so far

  // kView, kScores and kErf; its layer is `value`.
  TokenView view;
  bool shared = false;  // kData, too: another name of this value is read as well
  double factor = 1;    // kData, too: what multiplied it; the operation behind it must take it
  const OnnxNode* multiplied = nullptr;  // by this node
  bool erf_above = false;                // kErf: 1 + erf
  bool erf_taken = false;                // kData, kView: x (1 + erf(x / sqrt(2))), times `factor`
  int64_t heads = 0;                     // kScores
  bool shares = false;                   // kScores: after the softmax

  // kTensor
  const OnnxTensor* tensor = nullptr;
  bool turned = false;
  bool expanded = false;  // once for each sample

  double real = 0;  // kReal

  // kNumbers: a shape, or indices into one.
  std::vector<OnnxNumber> numbers;
  bool single = false;  // surely no row of one

  Shape shape() const;
  OnnxOperand As(std::vector<int64_t> other) const;  // the same values, in other words
  bool image() const { return extents.size() == 3; }
  bool row() const { return extents.size() == 1; }
};

OnnxOperand DataOf(int value, std::vector<int64_t> extents);

// What a rule sees of a node, and where it adds layers. Rules look at attributes first: of a node
// behind a refused one they are all that can be judged.
class NodeContext {
 public:
  NodeContext(const OnnxFile& file, OnnxLayers& made);

  // Begins with another node.
  void Take(const OnnxNode& node) { node_ = &node; }
  const OnnxNode& node() const { return *node_; }
  std::map<std::string_view, OnnxOperand>& values() { return values_; }
  int64_t opset() const { return file_.opset(); }
  bool reads(size_t input) const {
    return input < node_->inputs.size() && !node_->inputs[input].empty();
  }
  bool IsSamples(const OnnxNumber& number) const;
  int64_t samples() const;  // of the file's input; 0: free

  int64_t Int(std::string_view attribute, int64_t otherwise) const;
  float Number(std::string_view attribute, float otherwise) const;
  std::string_view Text(std::string_view attribute) const;
  std::vector<int64_t> Ints(std::string_view attribute) const;  // empty: it is not there

  const OnnxOperand& Input(size_t input) const;
  // The value of this input depends on the network's input: also where no more is known of it.
  bool Flows(size_t input) const;
  OnnxOperand Data(size_t input);              // complete: no slice, no softmax
  const OnnxOperand& Raw(size_t input) const;  // what a slice left, too
  OnnxOperand Image(size_t input);             // with height and width
  OnnxOperand Row(size_t input);
  OnnxOperand Tensor(size_t input) const;  // of floating-point numbers
  std::vector<OnnxNumber> Numbers(size_t input) const;
  std::vector<int64_t> Plain(size_t input) const;  // none of them the number of samples
  std::optional<double> Real(size_t input) const;  // of a single constant number
  // Given as an attribute, by newer opsets as an input; counted from 0 for values of this rank.
  std::vector<int64_t> Axes(size_t input, size_t rank) const;

  // Adds a layer behind `inputs`; the tensors are for its parameters and statistics, in the order
  // in which the operation has them.
  OnnxOperand Add(std::string_view op, const Attributes& attributes,
                  const std::vector<OnnxOperand>& inputs,
                  const std::vector<OnnxOperand>& tensors = {}, const Shape& rows = {});
  OnnxOperand Complete(const OnnxOperand& data);  // what a slice takes, taken
  OnnxOperand PadChannels(const OnnxOperand& data, int more);
  OnnxOperand Flatten(const OnnxOperand& data);
  // Makes the layer that made `data`, which nobody else may read, one with this bias. `behind`:
  // axes that the value has behind its channels.
  bool AddBias(const OnnxOperand& data, size_t behind, size_t input, const OnnxOperand& tensor);

  void CountReaders(const std::vector<const OnnxNode*>& nodes, std::string_view output);
  bool IsReadOnce(std::string_view name) const;

 private:
  std::string NameFor(const std::vector<OnnxOperand>& tensors) const;
  void TakeScale(const OnnxOperand& input);

  const OnnxFile& file_;
  OnnxLayers& made_;
  const OnnxNode* node_ = nullptr;
  std::map<std::string_view, OnnxOperand> values_;
  std::map<std::string_view, int> readers_;
  std::map<const OnnxTensor*, std::string> weights_;  // which node has it
  bool scaled_ = false;                               // made_.scale is what layers see
};

// How an operation of ONNX is said in ours: a row of one list.
using NodeRule = OnnxOperand (*)(NodeContext&);
struct NodeRow {
  std::string_view op;
  NodeRule rule;
};
std::span<const NodeRow> LayerRows();  // layer_rules.cc
// Tried before the others: kUnknown leaves the node to them.
std::span<const NodeRow> TokenRows();   // token_rules.cc
std::span<const NodeRow> NumberRows();  // number_rules.cc
std::span<const NodeRow> ShapeRows();   // shape_rules.cc

}  // namespace trireme
