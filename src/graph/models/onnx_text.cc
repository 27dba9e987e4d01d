#include "graph/models/onnx_text.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "graph/models/layer_kinds.h"

namespace trireme {
namespace {

constexpr int kDeepest = 30;  // residuals in each other

// The value of an argument as the text says it; empty: what it has where the text says nothing.
std::string ArgumentText(const LayerKind& kind, const LayerArgument& argument,
                         const Attributes& given) {
  Attributes standard;
  if (kind.strides_by_kernel) standard.stride = given.kernel;
  if (argument.flag) {
    const bool value = given.*argument.flag;
    return value == standard.*argument.flag ? "" : value ? "yes" : "no";
  }
  if (argument.count) {
    const int value = given.*argument.count;
    return value == standard.*argument.count && !argument.required ? "" : fmt::format("{}", value);
  }
  const float value = given.*argument.number;
  return value == standard.*argument.number && !argument.required ? "" : fmt::format("{}", value);
}

// As a name of the grammar: parts of letters, digits, _ and - between dots.
std::string Cleaned(const std::string& name) {
  std::string clean;
  for (std::string& part : Split(name, '.')) {
    for (char& c : part) {
      const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '_' || c == '-';
      if (!good) c = '_';
    }
    if (!part.empty()) clean += (clean.empty() ? "" : ".") + part;
  }
  constexpr size_t kLongest = 200;
  return clean.substr(0, kLongest);
}

class TextWriter {
 public:
  explicit TextWriter(const OnnxLayers& network)
      : network_(network), above_(network.layers.size() + 1), depth_(above_.size()) {
    written_.resize(network.layers.size());
    made_.names.resize(network.layers.size());
    for (size_t i = 0; i < network.layers.size(); ++i) FindFork(int(i) + 1);
    FindLast();
  }

  OnnxText Write() && {
    Chain(0, network_.output, 0);
    return std::move(made_);
  }

 private:
  const OnnxLayer& LayerOf(int value) const { return network_.layers[size_t(value) - 1]; }

  // The last value that all ways from the input to this one pass.
  void FindFork(int value) {
    const std::vector<int>& inputs = LayerOf(value).inputs;
    int fork = inputs[0];
    for (int other : inputs) {
      while (fork != other) {
        int& deeper = depth_[size_t(fork)] > depth_[size_t(other)] ? fork : other;
        deeper = above_[size_t(deeper)];
      }
    }
    above_[size_t(value)] = fork;
    depth_[size_t(value)] = depth_[size_t(fork)] + 1;
  }

  // The layer whose channels are the network's outputs, as far as they can be told.
  void FindLast() {
    int value = network_.output;
    while (value != 0) {
      const OnnxLayer& layer = LayerOf(value);
      if (layer.op == "dense" || layer.op == "conv2d") last_ = value;
      const bool keeps = layer.weights.empty() && layer.inputs.size() == 1 &&
                         layer.op != "flatten" && layer.op != "pad_channels" &&
                         layer.op != "attention";
      if (!keeps) return;
      value = layer.inputs[0];
    }
  }

  void Chain(int from, int to, int deep) {
    if (deep > kDeepest) throw Error("has more than {} sums in each other", kDeepest);
    std::vector<int> values;
    for (int value = to; value != from; value = above_[size_t(value)]) values.push_back(value);
    for (auto value = values.rbegin(); value != values.rend(); ++value) {
      if (written_[size_t(*value) - 1]) {
        throw Error(
            "cannot be said as a chain of layers and residuals: what node {} makes is read at "
            "several places that do not meet in one sum",
            ShownOnnx(LayerOf(*value).node));
      }
      written_[size_t(*value) - 1] = true;
      const std::string indent(size_t(2 * deep), ' ');
      if (LayerOf(*value).inputs.size() == 2) {
        Residual(*value, deep, indent);
      } else {
        made_.text += indent + LayerText(*value) + "\n";
      }
    }
  }

  void Residual(int value, int deep, const std::string& indent) {
    const int fork = above_[size_t(value)];
    int branch = LayerOf(value).inputs[0], shortcut = LayerOf(value).inputs[1];
    if (branch == fork) std::swap(branch, shortcut);
    if (branch == fork) {
      throw Error("adds a value to itself in node {}", ShownOnnx(LayerOf(value).node));
    }
    made_.text += indent + "residual {\n";
    Chain(fork, branch, deep + 1);
    if (shortcut != fork) {
      made_.text += indent + "} shortcut {\n";
      Chain(fork, shortcut, deep + 1);
    }
    made_.text += indent + "}\n";
  }

  std::string LayerText(int value) {
    const OnnxLayer& layer = LayerOf(value);
    const LayerKind& kind = *FindLayerKind(layer.op);
    std::string text = layer.op;
    for (const LayerArgument& argument : kind.arguments) {
      std::string word = ArgumentText(kind, argument, layer.attributes);
      if (argument.count == &Attributes::channels && value == last_) word = "classes";
      const bool first = &argument == kind.arguments.data();
      if (!word.empty()) text += first ? " " + word : fmt::format(" {}={}", argument.key, word);
    }
    if (layer.weights.empty()) return text;
    std::string& name = made_.names[size_t(value) - 1];
    name = Unique(Cleaned(layer.name), layer.op);
    return name + ": " + text;
  }

  std::string Unique(std::string name, const std::string& otherwise) {
    if (name.empty()) name = otherwise;
    std::string unique = name;
    for (int number = 2; !taken_.insert(unique).second; ++number) {
      unique = fmt::format("{}_{}", name, number);
    }
    return unique;
  }

  const OnnxLayers& network_;
  std::vector<int> above_, depth_;  // of each value: FindFork
  std::vector<bool> written_;       // layers
  std::set<std::string> taken_;
  int last_ = 0;
  OnnxText made_;
};

}  // namespace

OnnxText WriteOnnxText(const OnnxLayers& network) { return TextWriter(network).Write(); }

}  // namespace trireme
