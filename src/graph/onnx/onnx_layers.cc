#include "graph/onnx/onnx_layers.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "graph/onnx/node_context.h"

namespace trireme {
namespace {

constexpr size_t kLongestList = size_t{64} << 10;  // bytes of names in a message
constexpr int64_t kMostValues = int64_t{1} << 28;  // of a sample
constexpr size_t kMostNumbers = size_t{1} << 21;   // of all nodes' shapes and scales

// What our own files call the parts that belong to the data (model/onnx/): the network stands
// between them.
constexpr std::string_view kOurs = "trireme", kUnit = "data.unit", kScale = "data.scale",
                           kDeviation = "data.target_deviation", kLogits = "logits";
constexpr double kPixel = 255;  // they take bytes, where networks see 0 to 1

const NodeRow* FindIn(std::span<const NodeRow> rows, const OnnxNode& node) {
  const auto row = std::ranges::find(rows, node.op, &NodeRow::op);
  return row == rows.end() ? nullptr : &*row;
}

const NodeRow* FindRow(const OnnxNode& node) {
  if (!node.standard()) return nullptr;
  for (const auto rows : {LayerRows(), ShapeRows(), TokenRows(), NumberRows()}) {
    if (const NodeRow* row = FindIn(rows, node)) return row;
  }
  return nullptr;
}

class LayersReader {
 public:
  explicit LayersReader(const OnnxFile& file) : file_(file), context_(file, made_) {
    for (const OnnxNode& node : file.nodes()) {
      for (const std::string_view output : node.outputs) {
        if (output.empty() || makers_.emplace(output, &node).second) continue;
        throw Error("is damaged: {} is made twice", ShownOnnx(output));
      }
    }
    ours_ = file.producer() == kOurs;
  }

  OnnxLayers Read() && {
    const std::string_view output = FindOutput();
    const std::vector<const OnnxNode*> nodes = NodesFor(output);
    context_.CountReaders(nodes, output);
    PlaceInputs(nodes);
    for (const OnnxNode* node : nodes) ReadNode(*node);
    if (!refused_.empty()) Refuse();
    End(output);
    return std::move(made_);
  }

 private:
  // The node that reads one of our tensors, and its other input.
  const OnnxNode* ReaderOf(std::string_view tensor) const {
    for (const OnnxNode& node : file_.nodes()) {
      if (node.inputs.size() == 2 && node.inputs[1] == tensor) return &node;
    }
    return nullptr;
  }

  // Before what only renames it or the loss has, too.
  std::string_view Bare(std::string_view name) const {
    constexpr std::string_view kEnds[] = {"Identity", "Softmax", "LogSoftmax"};
    for (size_t i = 0; i < file_.nodes().size(); ++i) {
      const auto maker = makers_.find(name);
      if (maker == makers_.end() || maker->second->inputs.empty()) break;
      if (std::ranges::find(kEnds, maker->second->op) == std::end(kEnds)) break;
      name = maker->second->inputs[0];
    }
    return name;
  }

  std::string_view FindOutput() const {
    if (const OnnxNode* unit = ours_ ? ReaderOf(kDeviation) : nullptr) return unit->inputs[0];
    std::set<std::string_view> bare;
    std::vector<std::string> names;
    for (const OnnxPort& output : file_.outputs()) {
      if (output.name == kLogits) return output.name;
      bare.insert(Bare(output.name));
      names.push_back(ShownOnnx(output.name));
    }
    if (bare.size() == 1) return file_.outputs()[0].name;
    if (bare.empty()) throw Error("has no output");
    throw Error("has {} outputs ({}); export it with the one that is to be trained", names.size(),
                fmt::join(names.begin(), names.begin() + std::min<size_t>(names.size(), 5), ", "));
  }

  // Those that the output needs, in the file's order.
  std::vector<const OnnxNode*> NodesFor(std::string_view output) const {
    std::set<const OnnxNode*> needed;
    std::vector<std::string_view> open = {output};
    const OnnxNode* begin = InputOfColumns();
    while (!open.empty()) {
      const auto maker = makers_.find(open.back());
      open.pop_back();
      if (maker == makers_.end() || !needed.insert(maker->second).second) continue;
      if (maker->second == begin) continue;
      open.insert(open.end(), maker->second->inputs.begin(), maker->second->inputs.end());
    }
    std::vector<const OnnxNode*> nodes;
    for (const OnnxNode& node : file_.nodes()) {
      if (needed.contains(&node)) nodes.push_back(&node);
    }
    return nodes;
  }

  // Of our file for a table: how columns become numbers is learnt anew from the training data, and
  // the network begins behind that.
  const OnnxNode* InputOfColumns() const {
    const bool images = !file_.inputs().empty() && file_.inputs()[0].shape.size() == 4;
    return ours_ && !images ? ReaderOf(kScale) : nullptr;
  }

  void PlaceInputs(const std::vector<const OnnxNode*>& nodes) {
    auto& values = context_.values();
    if (const OnnxNode* begin = InputOfColumns()) {
      const OnnxOperand scale = values[kScale];
      values[begin->inputs[0]] = DataOf(0, {int64_t(scale.tensor->size())});
      return;
    }
    std::set<std::string_view> names;
    for (const OnnxNode* node : nodes) names.insert(node->inputs.begin(), node->inputs.end());
    std::vector<const OnnxPort*> read;
    for (const OnnxPort& port : file_.inputs()) {
      if (names.contains(port.name)) read.push_back(&port);
    }
    if (read.size() != 1)
      throw Error("has {}; networks here have one", Counted(int64_t(read.size()), "input"));
    const OnnxPort& port = *read[0];
    constexpr int64_t kFloats[] = {1, 10, 11, 16};
    if (std::ranges::find(kFloats, port.type) == std::end(kFloats)) {
      throw Error("input {} holds no floating-point numbers", ShownOnnx(port.name));
    }
    if (port.shape.size() < 2 || port.shape.size() > 4) {
      throw Error(
          "input {} has {}; networks here take samples x channels x height x width, or "
          "samples x values",
          ShownOnnx(port.name), Counted(int64_t(port.shape.size()), "axis"));
    }
    int64_t size = 1;
    for (size_t i = 1; i < port.shape.size(); ++i) {
      const int64_t extent = port.shape[i];
      if (extent < 1) {
        throw Error(
            "axis {} of input {} has no fixed extent; only the number of samples may be "
            "free, so export it for one size",
            i, ShownOnnx(port.name));
      }
      if (extent > kMostValues / size) {
        throw Error("input {} has more than {} values", ShownOnnx(port.name),
                    FormatCount(kMostValues));
      }
      size *= extent;
    }
    values[port.name] = DataOf(0, {port.shape.begin() + 1, port.shape.end()});
  }

  void ReadNode(const OnnxNode& node) {
    auto& values = context_.values();
    for (const std::string_view output : node.outputs) {
      if (values.contains(output)) {
        throw Error("is damaged: {} is made twice", ShownOnnx(output));
      }
    }
    context_.Take(node);
    OnnxOperand made{.flows = Flows(node)};
    const NodeRow* row = FindRow(node);
    if (!row) {
      refused_[node.Operation()].push_back(node.Label());
    } else {
      try {
        made = FirstOf(node, row->rule);
      } catch (const NodeRefusal& refusal) {
        refused_[fmt::format("{}, {}", node.Operation(), refusal.why)].push_back(node.Label());
      } catch (const NodeSkipped&) {
      }
    }
    CountNumbers(made);
    made.shared = IsShared(node, made);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      OnnxOperand& value = values[node.outputs[i]];
      if (i == 0)
        value = std::move(made);
      else if (row)
        value.kind = OnnxOperand::Kind::kSecond;
    }
  }

  // Whether a node gives another name to a value that is read by an old one, too.
  bool IsShared(const OnnxNode& node, const OnnxOperand& made) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!context_.Flows(i)) continue;
      const OnnxOperand& from = context_.values()[node.inputs[i]];
      const bool same = from.value == made.value;
      if (same && (from.shared || !context_.IsReadOnce(node.inputs[i]))) return true;
    }
    return false;
  }

  // Nodes of a few bytes may each make another copy of a long list.
  void CountNumbers(const OnnxOperand& made) {
    numbers_ += made.numbers.size() + made.scale.size() + made.shift.size();
    if (numbers_ > kMostNumbers) {
      throw Error("has nodes that make more than {} numbers", FormatCount(kMostNumbers));
    }
  }

  // What the rule for tokens or numbers makes of a node, else the one for all others.
  OnnxOperand FirstOf(const OnnxNode& node, NodeRule otherwise) {
    for (const auto rows : {TokenRows(), NumberRows()}) {
      const NodeRow* row = FindIn(rows, node);
      if (!row) continue;
      if (row->rule == otherwise) break;
      try {
        OnnxOperand made = row->rule(context_);
        if (made.kind != OnnxOperand::Kind::kUnknown) return made;
      } catch (const NodeSkipped&) {  // the other one may judge its attributes
      }
    }
    OnnxOperand made = otherwise(context_);
    if (made.kind == OnnxOperand::Kind::kUnknown) RefuseNode("of such inputs");
    return made;
  }

  bool Flows(const OnnxNode& node) const {
    if (node.op == "Shape" || node.op == "Size") return false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (context_.Flows(i)) return true;
    }
    return false;
  }

  [[noreturn]] void Refuse() const {
    std::string list;
    size_t count = 0, shown = 0;
    for (const auto& [what, nodes] : refused_) {
      count += nodes.size();
      if (list.size() > kLongestList) continue;
      list += fmt::format("\n  {}: {}", what, fmt::join(nodes, ", "));
      shown += nodes.size();
    }
    if (shown < count) list += fmt::format("\n  and {} more", count - shown);
    throw Error("has {} without a counterpart here:{}", Counted(int64_t(count), "node"), list);
  }

  void End(std::string_view output) {
    const auto found = context_.values().find(output);
    using Kind = OnnxOperand::Kind;
    const Kind kind = found == context_.values().end() ? Kind::kUnknown : found->second.kind;
    if (kind == Kind::kView || kind == Kind::kScores || kind == Kind::kErf) {
      throw Error("ends with tokens; networks here end with a row, a value for each class");
    }
    if (kind != Kind::kData) {
      throw Error("is damaged: nothing makes its output {}", ShownOnnx(output));
    }
    if (found->second.multiplied) {
      throw Error("multiplies its end in node {}", found->second.multiplied->Label());
    }
    OnnxOperand end;
    try {
      end = context_.Complete(found->second);
    } catch (const NodeRefusal& refusal) {
      throw Error("its end {}", refusal.why);
    }
    const Shape shape = end.shape();
    if (shape.height != 1 || shape.width != 1) {
      throw Error("makes {} of a sample; networks here end with a row, a value for each class",
                  ExtentsText(end.extents));
    }
    if (made_.layers.empty()) throw Error("has no layer");
    made_.output = end.value;
    const bool bytes = ours_ && context_.values().contains(kUnit);
    for (double& scale : made_.scale) scale *= bytes ? kPixel : 1;
  }

  const OnnxFile& file_;
  OnnxLayers made_;
  NodeContext context_;
  std::map<std::string_view, const OnnxNode*> makers_;
  std::map<std::string, std::vector<std::string>> refused_;  // by what they are
  size_t numbers_ = 0;
  bool ours_ = false;
};

}  // namespace

std::vector<float> OnnxWeight::Values() const {
  size_t size = 1;
  for (const int64_t extent : shape) size *= size_t(extent);
  if (!tensor) return std::vector<float>(size);
  std::vector<float> values = tensor->Floats();
  if (turned) {
    const auto rows = size_t(tensor->shape()[0]), columns = size_t(tensor->shape()[1]);
    std::vector<float> other(values.size());
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < columns; ++c) other[c * rows + r] = values[r * columns + c];
    }
    values = std::move(other);
  }
  const size_t places = size_t(image.height) * size_t(image.width),
               channels = size_t(image.channels);
  if (places <= 1) return values;
  std::vector<float> moved(values.size());
  for (size_t begin = 0; begin < values.size(); begin += places * channels) {
    for (size_t c = 0; c < channels; ++c) {
      for (size_t p = 0; p < places; ++p) {
        moved[begin + p * channels + c] = values[begin + c * places + p];
      }
    }
  }
  return moved;
}

std::string ExtentsText(const std::vector<int64_t>& extents) {
  return fmt::format("{}", fmt::join(extents, "x"));
}

OnnxLayers ReadOnnxLayers(const OnnxFile& file) { return LayersReader(file).Read(); }

}  // namespace trireme
