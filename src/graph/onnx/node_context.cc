#include "graph/onnx/node_context.h"

#include <algorithm>

#include "base/error.h"
#include "graph/layout.h"
#include "graph/op.h"

namespace trireme {
namespace {

constexpr size_t kMostNumbers = 1'024;  // of a shape
constexpr int64_t kMostValues = int64_t{1} << 28;
constexpr size_t kMostLayers = 10'000;

}  // namespace

Shape OnnxOperand::shape() const {
  Shape shape;
  if (extents.size() == 1) shape.channels = int(extents[0]);
  if (extents.size() == 2) shape = {.height = int(extents[0]), .width = int(extents[1])};
  if (extents.size() == 3) shape = {int(extents[1]), int(extents[2]), int(extents[0])};
  return shape;
}

OnnxOperand DataOf(int value, std::vector<int64_t> extents) {
  OnnxOperand data{.kind = OnnxOperand::Kind::kData, .value = value, .extents = std::move(extents)};
  data.flattened = data.shape();
  return data;
}

NodeContext::NodeContext(const OnnxFile& file, OnnxLayers& made) : file_(file), made_(made) {
  for (const OnnxTensor& tensor : file.tensors()) {
    values_[tensor.name()] = {.kind = OnnxOperand::Kind::kTensor, .tensor = &tensor};
  }
}

bool NodeContext::IsSamples(const OnnxNumber& number) const {
  if (number.samples) return number.value == 1;
  return number.value > 0 && number.value == samples();
}

// A file for a fixed number of samples says that number.
int64_t NodeContext::samples() const {
  const auto& inputs = file_.inputs();
  if (inputs.empty() || inputs[0].shape.empty()) return 0;
  return std::max<int64_t>(inputs[0].shape[0], 0);
}

int64_t NodeContext::Int(std::string_view attribute, int64_t otherwise) const {
  const auto found = node_->attributes.find(attribute);
  return found == node_->attributes.end() ? otherwise : found->second.integer.value_or(otherwise);
}

float NodeContext::Number(std::string_view attribute, float otherwise) const {
  const auto found = node_->attributes.find(attribute);
  return found == node_->attributes.end() ? otherwise : found->second.number.value_or(otherwise);
}

std::string_view NodeContext::Text(std::string_view attribute) const {
  const auto found = node_->attributes.find(attribute);
  return found == node_->attributes.end() ? std::string_view() : found->second.text;
}

std::vector<int64_t> NodeContext::Ints(std::string_view attribute) const {
  const auto found = node_->attributes.find(attribute);
  return found == node_->attributes.end() ? std::vector<int64_t>() : found->second.integers;
}

const OnnxOperand& NodeContext::Input(size_t input) const {
  if (!reads(input)) RefuseNode("input {} is missing", input);
  const auto found = values_.find(node_->inputs[input]);
  if (found == values_.end()) {
    RefuseNode("reads {}, which nothing before it makes", ShownOnnx(node_->inputs[input]));
  }
  if (found->second.kind == OnnxOperand::Kind::kUnknown) throw NodeSkipped{};
  if (found->second.kind == OnnxOperand::Kind::kSecond) {
    RefuseNode("reads {}, a second result", ShownOnnx(node_->inputs[input]));
  }
  return found->second;
}

bool NodeContext::Flows(size_t input) const {
  if (!reads(input)) return false;
  const auto found = values_.find(node_->inputs[input]);
  using Kind = OnnxOperand::Kind;
  constexpr Kind kFlowing[] = {Kind::kData, Kind::kView, Kind::kScores, Kind::kErf};
  return found != values_.end() &&
         (found->second.flows ||
          std::ranges::find(kFlowing, found->second.kind) != std::end(kFlowing));
}

const OnnxOperand& NodeContext::Raw(size_t input) const {
  const OnnxOperand& value = Input(input);
  using Kind = OnnxOperand::Kind;
  if (value.multiplied) {
    RefuseNode("reads what {} ({}) multiplies", value.multiplied->Label(),
               value.multiplied->Operation());
  }
  if (value.kind == Kind::kView || value.kind == Kind::kScores || value.kind == Kind::kErf) {
    RefuseNode("reads tokens, or parts of them, in an order that it cannot have here");
  }
  if (value.kind != Kind::kData) RefuseNode("input {} is a constant", input);
  if (value.softmax) {
    RefuseNode("reads the result of {} ({}); only at the end can it be left to the loss",
               value.softmax->Label(), value.softmax->Operation());
  }
  return value;
}

OnnxOperand NodeContext::Complete(const OnnxOperand& data) {
  if (data.step_h == 1 && data.step_w == 1) return data;
  if (data.step_h != data.step_w) {
    RefuseNode("takes every pixel {} down and {} across", data.step_h, data.step_w);
  }
  return PadChannels(data, 0);
}

OnnxOperand NodeContext::PadChannels(const OnnxOperand& data, int more) {
  const Attributes attributes{.channels = int(data.extents[0]) + more, .stride = data.step_h};
  OnnxOperand whole = data;
  if (data.step_h != 1) {
    whole.extents = {data.extents[0], data.flattened.height, data.flattened.width};
  }
  return Add("pad_channels", attributes, {whole});
}

OnnxOperand OnnxOperand::As(std::vector<int64_t> other) const {
  OnnxOperand same = *this;
  same.extents = std::move(other);
  same.flattened = same.shape();
  same.in_order = false;
  return same;
}

OnnxOperand NodeContext::Data(size_t input) { return Complete(Raw(input)); }

OnnxOperand NodeContext::Image(size_t input) {
  OnnxOperand data = Data(input);
  if (!data.image()) RefuseNode("needs height and width, got {}", ExtentsText(data.extents));
  return data;
}

OnnxOperand NodeContext::Row(size_t input) {
  OnnxOperand data = Data(input);
  if (!data.row()) RefuseNode("needs a row of each sample, got {}", ExtentsText(data.extents));
  return data;
}

OnnxOperand NodeContext::Tensor(size_t input) const {
  if (Flows(input)) RefuseNode("input {} is no constant", input);
  const OnnxOperand& value = Input(input);
  if (value.kind != OnnxOperand::Kind::kTensor || !value.tensor->holds_floats()) {
    RefuseNode("input {} is no constant", input);
  }
  return value;
}

std::vector<OnnxNumber> NodeContext::Numbers(size_t input) const {
  const OnnxOperand& value = Input(input);
  if (value.kind == OnnxOperand::Kind::kNumbers) return value.numbers;
  if (value.kind != OnnxOperand::Kind::kTensor || !value.tensor->holds_integers()) {
    RefuseNode("input {} is not known before the network runs", input);
  }
  std::vector<OnnxNumber> numbers;
  for (const int64_t number : value.tensor->Integers(kMostNumbers)) numbers.push_back({number});
  return numbers;
}

std::vector<int64_t> NodeContext::Plain(size_t input) const {
  std::vector<int64_t> plain;
  for (const OnnxNumber& number : Numbers(input)) {
    if (number.samples) RefuseNode("input {} depends on the number of samples", input);
    plain.push_back(number.value);
  }
  return plain;
}

std::optional<double> NodeContext::Real(size_t input) const {
  using Kind = OnnxOperand::Kind;
  if (Flows(input)) return {};
  const OnnxOperand& value = Input(input);
  if (value.kind == Kind::kReal) return value.real;
  if (value.kind == Kind::kNumbers && value.numbers.size() == 1 && !value.numbers[0].samples) {
    return double(value.numbers[0].value);
  }
  if (value.kind != Kind::kTensor || value.tensor->size() != 1) return {};
  if (value.tensor->holds_integers()) return double(value.tensor->Integers(1)[0]);
  return value.tensor->holds_floats() ? std::optional(double(value.tensor->Floats()[0]))
                                      : std::nullopt;
}

std::vector<int64_t> NodeContext::Axes(size_t input, size_t rank) const {
  std::vector<int64_t> axes = reads(input) ? Plain(input) : Ints("axes");
  for (int64_t& axis : axes) axis += axis < 0 ? int64_t(rank) : 0;
  std::ranges::sort(axes);
  return axes;
}

void NodeContext::CountReaders(const std::vector<const OnnxNode*>& nodes, std::string_view output) {
  ++readers_[output];
  for (const OnnxNode* node : nodes) {
    for (const std::string_view name : node->inputs) ++readers_[name];
  }
}

// A tensor conv1.weight names its layer; otherwise the node does, in which exporters have the path
// of the module: /layer1/layer1.0/conv1/Conv.
std::string NodeContext::NameFor(const std::vector<OnnxOperand>& tensors) const {
  constexpr std::string_view kEnd = "weight";
  if (!tensors.empty() && tensors[0].tensor) {
    std::string_view name = tensors[0].tensor->name();
    if (name.ends_with(kEnd)) {
      name.remove_suffix(kEnd.size());
      if (name.ends_with('_') && name.size() > 1) return std::string(name);  // in_proj_weight
      if (name.ends_with('.')) return std::string(name.substr(0, name.size() - 1));
    }
  }
  std::string path, last;
  std::string_view rest = node_->name;
  for (size_t slash = rest.find('/'); !rest.empty(); slash = rest.find('/')) {
    const std::string part(rest.substr(0, slash));
    rest = slash == rest.npos ? std::string_view() : rest.substr(slash + 1);
    if (part.empty() || (rest.empty() && !path.empty())) continue;  // the last is the operation
    if (!last.empty() && part.starts_with(last + ".")) {
      path.resize(path.size() - last.size());
      path += part;
    } else {
      path += (path.empty() ? "" : ".") + part;
    }
    last = part;
  }
  return path;
}

void NodeContext::TakeScale(const OnnxOperand& input) {
  if (input.value != 0) return;
  if (scaled_ && (made_.scale != input.scale || made_.shift != input.shift)) {
    RefuseNode("reads the network's input otherwise than another node does");
  }
  scaled_ = true;
  made_.scale = input.scale;
  made_.shift = input.shift;
}

OnnxOperand NodeContext::Add(std::string_view op, const Attributes& attributes,
                             const std::vector<OnnxOperand>& inputs,
                             const std::vector<OnnxOperand>& tensors, const Shape& rows) {
  OnnxLayer layer{.op = std::string(op),
                  .attributes = attributes,
                  .name = NameFor(tensors),
                  .node = node_->Label()};
  std::vector<ValueSpec> specs;
  for (const OnnxOperand& input : inputs) {
    specs.push_back({.shape = input.shape()});
    layer.inputs.push_back(input.value);
  }
  Signature signature;
  try {
    signature = FindOp(op).infer(specs, attributes);
  } catch (const Error& error) {
    RefuseNode("{}", error.what());
  }
  const Shape made = signature.outputs[0].shape;
  if (made.size() > kMostValues) {
    RefuseNode("makes {}, more than {} values for each sample", ToText(made), kMostValues);
  }
  std::vector<ParameterSpec> parameters = signature.parameters;
  parameters.insert(parameters.end(), signature.statistics.begin(), signature.statistics.end());
  // What a layer learns without a name of its own has the layer's.
  if (!tensors.empty() && !parameters.empty() && parameters[0].name.empty()) {
    layer.name = tensors[0].tensor ? tensors[0].tensor->name() : std::string_view();
  }
  if (!tensors.empty() && parameters.size() != tensors.size()) {
    RefuseNode("has {} tensors, not {}", tensors.size(), parameters.size());
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const OnnxOperand& from = tensors[i];
    OnnxWeight weight{
        .name = parameters[i].name,
        .shape = FileShape(parameters[i]),
        .tensor = from.tensor,
        .turned = from.turned,
        .image = i == 0 || parameters[i].shape == parameters[0].shape ? rows : Shape{}};
    if (from.tensor && from.tensor->size() != size_t(parameters[i].size())) {
      RefuseNode("tensor {} has {} values, not {}", ShownOnnx(from.tensor->name()),
                 from.tensor->size(), parameters[i].size());
    }
    layer.weights.push_back(std::move(weight));
  }
  if (made_.layers.size() >= kMostLayers) throw Error("has more than {} layers", kMostLayers);
  // Norms do not count: exporters make one tensor of equal ones.
  constexpr std::string_view kOwn[] = {"conv2d", "dense", "class_token", "position_embedding"};
  if (!tensors.empty() && std::ranges::find(kOwn, op) != std::end(kOwn)) {
    const auto [at, first] = weights_.emplace(tensors[0].tensor, layer.node);
    if (!first)
      RefuseNode("has the weights of {}; layers that share weights cannot be", at->second);
  }
  for (const OnnxOperand& input : inputs) TakeScale(input);
  made_.layers.push_back(std::move(layer));
  OnnxOperand value = DataOf(int(made_.layers.size()), {});
  if (made.height == 1 && made.width == 1 && !inputs[0].image()) {
    value.extents = {made.channels};
  } else {
    value.extents = {made.channels, made.height, made.width};
  }
  const bool keeps = value.row() && made == inputs[0].shape() && op != "dense" && op != "conv2d";
  value.flattened = keeps ? inputs[0].flattened : made;
  value.in_order = keeps && inputs[0].in_order && parameters.empty();
  if (value.in_order) value.token_rows = inputs[0].token_rows;
  return value;
}

OnnxOperand NodeContext::Flatten(const OnnxOperand& data) {
  if (data.row()) return data;
  const Shape shape = data.shape();
  if (shape.height == 1 && shape.width == 1) {
    OnnxOperand row = data;
    row.extents = {shape.channels};
    row.flattened = shape;
    return row;
  }
  OnnxOperand row = Add("flatten", {}, {data});
  row.extents = {shape.size()};
  row.flattened = shape;
  row.in_order = true;
  return row;
}

bool NodeContext::IsReadOnce(std::string_view name) const {
  const auto found = readers_.find(name);
  return found != readers_.end() && found->second == 1;
}

bool NodeContext::AddBias(const OnnxOperand& data, size_t behind, size_t input,
                          const OnnxOperand& tensor) {
  if (data.value == 0 || Input(input).shared || !IsReadOnce(node_->inputs[input])) return false;
  OnnxLayer& layer = made_.layers[size_t(data.value) - 1];
  if (layer.attributes.bias == false && (layer.op == "dense" || layer.op == "conv2d") &&
      tensor.tensor->size() == size_t(layer.attributes.channels)) {
    // One value for each channel: [C], [1, C], or [1, C, 1, 1].
    const auto& shape = tensor.tensor->shape();
    const size_t place = shape.size() - 1 - behind;
    if (place >= shape.size() || shape[place] != layer.attributes.channels) return false;
    layer.attributes.bias = true;
    layer.weights.push_back(
        {.name = "bias", .shape = {layer.attributes.channels}, .tensor = tensor.tensor});
    return true;
  }
  return false;
}

}  // namespace trireme
