// The operations that make layers.
#include <algorithm>
#include <cmath>

#include "graph/onnx/node_context.h"

namespace trireme {
namespace {

using Inputs = std::vector<OnnxOperand>;

constexpr int64_t kMostCount = 1 << 20;  // channels, pixels across a kernel: far above what is used

int Narrow(int64_t count, const char* what) {
  if (count < 0 || count > kMostCount) RefuseNode("{} {}", what, count);
  return int(count);
}

// Numbers that all must be the same, one for each of two axes or sides.
int Same(const std::vector<int64_t>& numbers, int64_t otherwise, const char* what) {
  if (numbers.empty()) return int(otherwise);
  for (const int64_t number : numbers) {
    if (number != numbers[0]) RefuseNode("{} {}", what, ExtentsText(numbers));
  }
  return Narrow(numbers[0], what);
}

// Of convolutions and pools. `kernel`: where no attribute says it.
Attributes Window(NodeContext& c, std::vector<int64_t> kernel = {}) {
  const std::vector<int64_t> given = c.Ints("kernel_shape");
  if (!given.empty()) kernel = given;
  if (kernel.size() != 2) RefuseNode("{} axes that a window slides along", kernel.size());
  const std::string_view pad = c.Text("auto_pad");
  if (!pad.empty() && pad != "NOTSET" && pad != "VALID") {
    RefuseNode("auto_pad {}", ShownOnnx(pad));
  }
  if (Same(c.Ints("dilations"), 1, "dilations") != 1) {
    RefuseNode("dilations {}", ExtentsText(c.Ints("dilations")));
  }
  return {.kernel = Same(kernel, 1, "a kernel of"),
          .stride = Same(c.Ints("strides"), 1, "strides"),
          .padding = pad == "VALID" ? 0 : Same(c.Ints("pads"), 0, "pads")};
}

// A window that begins within the image but ends beyond it counts for ONNX, never for us.
void RefuseCeiling(NodeContext& c, const Attributes& a, const Shape& in) {
  if (c.Int("ceil_mode", 0) == 0) return;
  const auto fits = [&](int extent) { return (extent + 2 * a.padding - a.kernel) % a.stride == 0; };
  if (!fits(in.height) || !fits(in.width)) RefuseNode("ceil_mode 1");
}

OnnxOperand Conv(NodeContext& c) {
  if (c.Int("group", 1) != 1) RefuseNode("group {}", c.Int("group", 1));
  const OnnxOperand weight = c.Tensor(1);
  const auto& shape = weight.tensor->shape();
  if (shape.size() != 4) RefuseNode("weights with {} axes, not 4", shape.size());
  Attributes attributes = Window(c, {shape[2], shape[3]});
  attributes.channels = Narrow(shape[0], "channels");
  attributes.bias = c.reads(2);
  const OnnxOperand x = c.Image(0);
  if (shape[1] != x.extents[0] || shape[2] != attributes.kernel || shape[3] != attributes.kernel) {
    RefuseNode("weights {} for {}", ExtentsText(shape), ExtentsText(x.extents));
  }
  Inputs tensors = {weight};
  if (attributes.bias) tensors.push_back(c.Tensor(2));
  return c.Add("conv2d", attributes, {x}, tensors);
}

// `weight` is [out][in], or with `turned` [in][out].
OnnxOperand Dense(NodeContext& c, OnnxOperand weight, bool turned, Inputs bias) {
  weight.turned ^= turned;
  const auto& shape = weight.tensor->shape();
  if (shape.size() != 2) RefuseNode("weights with {} axes, not 2", shape.size());
  const int64_t out = shape[weight.turned ? 1 : 0], in = shape[weight.turned ? 0 : 1];
  Attributes attributes{.channels = Narrow(out, "outputs"), .bias = !bias.empty()};
  const OnnxOperand x = c.Row(0);
  if (x.extents[0] != in) RefuseNode("weights {} for {} values", ExtentsText(shape), x.extents[0]);
  Inputs tensors = {std::move(weight)};
  tensors.insert(tensors.end(), bias.begin(), bias.end());
  return c.Add("dense", attributes, {x}, tensors, x.in_order ? x.token_rows : x.flattened);
}

OnnxOperand Gemm(NodeContext& c) {
  if (c.Number("alpha", 1) != 1) RefuseNode("alpha {}", c.Number("alpha", 1));
  if (c.Number("beta", 1) != 1) RefuseNode("beta {}", c.Number("beta", 1));
  if (c.Int("transA", 0) != 0) RefuseNode("transA {}", c.Int("transA", 0));
  const Inputs bias = c.reads(2) ? Inputs{c.Tensor(2)} : Inputs{};
  return Dense(c, c.Tensor(1), c.Int("transB", 0) == 0, bias);
}

OnnxOperand MatMul(NodeContext& c) { return Dense(c, c.Tensor(1), true, {}); }

// The order of ONNX of a row's values, where a norm has parameters for each.
Shape RowsOf(const OnnxOperand& x) { return x.row() ? x.flattened : Shape{}; }

OnnxOperand BatchNormalization(NodeContext& c) {
  const Attributes attributes{.epsilon = c.Number("epsilon", 1e-5f)};
  const Inputs tensors = {c.Tensor(1), c.Tensor(2), c.Tensor(3), c.Tensor(4)};
  const OnnxOperand x = c.Data(0);
  if (!x.row() && !x.image()) RefuseNode("the axes {}", ExtentsText(x.extents));
  return c.Add("batch_norm", attributes, {x}, tensors, RowsOf(x));
}

// Ones without a shift are what a norm without parameters becomes.
bool IsPlain(NodeContext& c, const OnnxOperand& x, const OnnxOperand& scale) {
  return !c.reads(2) && int64_t(scale.tensor->size()) == x.shape().size() &&
         std::ranges::all_of(scale.tensor->Floats(), [](float s) { return s == 1; });
}

OnnxOperand LayerNormalization(NodeContext& c) {
  const OnnxOperand scale = c.Tensor(1);
  const OnnxOperand x = c.Data(0);
  int64_t axis = c.Int("axis", -1);
  axis += axis < 0 ? int64_t(x.extents.size()) + 1 : 0;
  if (axis != 1) {
    RefuseNode("axis {} of {}: only all values of a sample together", c.Int("axis", -1),
               ExtentsText(x.extents));
  }
  Attributes attributes{.epsilon = c.Number("epsilon", 1e-5f)};
  attributes.affine = !IsPlain(c, x, scale);
  if (!attributes.affine) return c.Add("layer_norm", attributes, {x});
  Inputs tensors = {scale, c.reads(2) ? c.Tensor(2) : OnnxOperand{}};
  return c.Add("layer_norm", attributes, {x}, tensors, x.row() ? x.flattened : x.shape());
}

OnnxOperand Activation(NodeContext& c, const char* op) { return c.Add(op, {}, {c.Data(0)}); }
OnnxOperand Relu(NodeContext& c) { return Activation(c, "relu"); }
OnnxOperand Sigmoid(NodeContext& c) { return Activation(c, "sigmoid"); }
OnnxOperand Tanh(NodeContext& c) { return Activation(c, "tanh"); }

OnnxOperand Pool(NodeContext& c, const char* op) {
  const Attributes attributes = Window(c);
  const OnnxOperand x = c.Image(0);
  RefuseCeiling(c, attributes, x.shape());
  if (attributes.kernel == 1 && attributes.stride == 1 && attributes.padding == 0) return x;
  return c.Add(op, attributes, {x});
}

OnnxOperand MaxPool(NodeContext& c) { return Pool(c, "max_pool"); }

OnnxOperand AveragePool(NodeContext& c) {
  const bool padded = std::ranges::any_of(c.Ints("pads"), [](int64_t pad) { return pad != 0; });
  if (padded && c.Int("count_include_pad", 0) == 0) RefuseNode("pads that are not counted");
  return Pool(c, "average_pool");
}

OnnxOperand GlobalAveragePool(NodeContext& c) {
  return c.Add("global_average_pool", {}, {c.Image(0)});
}

OnnxOperand ReduceMean(NodeContext& c) {
  if (c.Axes(1, 4) != std::vector<int64_t>{2, 3}) RefuseNode("axes other than height and width");
  OnnxOperand made = GlobalAveragePool(c);
  return c.Int("keepdims", 1) ? made : c.Flatten(made);
}

OnnxOperand Dropout(NodeContext& c) {
  float rate = c.Number("ratio", 0.5f);
  if (c.reads(1)) {
    const OnnxOperand ratio = c.Tensor(1);
    if (ratio.tensor->size() != 1) RefuseNode("a ratio of {} values", ratio.tensor->size());
    rate = ratio.tensor->Floats()[0];
  }
  if (!(rate >= 0 && rate < 1)) RefuseNode("a ratio of {}", rate);
  const OnnxOperand x = c.Data(0);
  return rate == 0 ? x : c.Add("dropout", {.rate = rate}, {x});
}

OnnxOperand Softmax(NodeContext& c) {
  const int64_t axis = c.Int("axis", c.opset() < 13 ? 1 : -1);
  OnnxOperand x = c.Row(0);
  if (axis != 1 && axis != -1) RefuseNode("axis {}", axis);
  x.softmax = &c.node();
  return x;
}

// Zeros behind the channels; a slice before it has taken some pixels.
OnnxOperand Pad(NodeContext& c) {
  const std::string_view mode = c.Text("mode");
  if (!mode.empty() && mode != "constant") RefuseNode("mode {}", ShownOnnx(mode));
  const bool filled = c.reads(2) ? c.Tensor(2).tensor->Floats() != std::vector<float>{0}
                                 : c.Number("value", 0) != 0;
  if (filled) RefuseNode("pads with another number than 0");
  if (c.reads(3)) RefuseNode("axes");
  const std::vector<int64_t> pads = c.reads(1) ? c.Plain(1) : c.Ints("pads");
  const OnnxOperand& x = c.Raw(0);
  if (pads.size() != 2 * (x.extents.size() + 1)) RefuseNode("{} pads", pads.size());
  for (size_t i = 0; i < pads.size(); ++i) {
    const bool behind_channels = i == pads.size() / 2 + 1 && x.image();
    if (pads[i] != 0 && !(behind_channels && pads[i] > 0)) {
      RefuseNode("pads {}; only channels of zeros behind the others", ExtentsText(pads));
    }
  }
  const int64_t more = x.image() ? pads[5] : 0;
  if (more == 0) return x;
  if (x.step_h != x.step_w) return c.Complete(x);
  return c.PadChannels(x, Narrow(more, "channels"));
}

// ---- arithmetic

// What is done to the network's input before the first layer belongs to its normalisation.
OnnxOperand Scaled(OnnxOperand x, const OnnxOperand& constant, std::string_view op) {
  const auto channels = size_t(Narrow(x.extents[0], "channels"));
  const std::vector<float> values = constant.tensor->Floats();
  auto shape = constant.tensor->shape();
  while (!shape.empty() && shape[0] == 1) shape.erase(shape.begin());
  while (x.image() && !shape.empty() && shape.back() == 1) shape.pop_back();
  const bool per_channel = values.size() == channels && shape.size() == 1 &&
                           (x.row() || constant.tensor->shape().size() >= 3);
  if (values.size() != 1 && !(per_channel && x.extents.size() != 2)) {
    RefuseNode("a constant {} for {}", ExtentsText(constant.tensor->shape()),
               ExtentsText(x.extents));
  }
  if (x.scale.empty()) {
    x.scale.assign(channels, 1);
    x.shift.assign(channels, 0);
  }
  for (size_t i = 0; i < channels; ++i) {
    const double value = values[values.size() == 1 ? 0 : i];
    if (!std::isfinite(value) || (op == "Div" && value == 0)) RefuseNode("a constant {}", value);
    if (op == "Add") x.shift[i] += value;
    if (op == "Sub") x.shift[i] -= value;
    if (op == "Mul" || op == "Div") {
      const double factor = op == "Mul" ? value : 1 / value;
      x.scale[i] *= factor;
      x.shift[i] *= factor;
    }
  }
  return x;
}

OnnxOperand AddConstant(NodeContext& c, size_t data, size_t constant) {
  const OnnxOperand tensor = c.Tensor(constant);
  const OnnxOperand x = c.Data(data);
  if (x.value == 0) return Scaled(x, tensor, "Add");
  const size_t behind = x.image() ? 2 : 0;
  if (!c.AddBias(x, behind, data, tensor)) RefuseNode("adds a constant that is no layer's bias");
  return x;
}

OnnxOperand Add(NodeContext& c) {
  using Kind = OnnxOperand::Kind;
  if (c.Input(0).kind == Kind::kTensor) return AddConstant(c, 1, 0);
  if (c.Input(1).kind == Kind::kTensor) return AddConstant(c, 0, 1);
  const OnnxOperand a = c.Data(0), b = c.Data(1);
  if (a.extents != b.extents) {
    RefuseNode("adds {} and {}", ExtentsText(a.extents), ExtentsText(b.extents));
  }
  if (a.flattened != b.flattened || a.in_order != b.in_order) {
    RefuseNode("adds rows of images of other shapes");
  }
  return c.Add("add", {}, {a, b});
}

// Of the network's input and a constant, or of numbers in a shape.
OnnxOperand Arithmetic(NodeContext& c) {
  using Kind = OnnxOperand::Kind;
  const std::string_view op = c.node().op;
  if (c.Flows(0) && c.Flows(1)) RefuseNode("of two values of the network");
  const OnnxOperand &a = c.Input(0), &b = c.Input(1);
  if (op == "Mul" && a.kind != Kind::kData && b.kind != Kind::kData) {
    const auto x = c.Plain(0), y = c.Plain(1);
    if (x.size() != 1 || y.size() != 1) RefuseNode("multiplies shapes");
    return {.kind = Kind::kNumbers,
            .numbers = {{Narrow(x[0], "a number") * int64_t{Narrow(y[0], "a number")}}}};
  }
  const bool swapped = op == "Mul" && a.kind == Kind::kTensor;
  const OnnxOperand x = c.Data(swapped ? 1 : 0);
  if (x.value != 0) {
    RefuseNode("{} what layers make", op == "Sub" ? "subtracts from" : "multiplies");
  }
  return Scaled(x, c.Tensor(swapped ? 0 : 1), op);
}

constexpr NodeRow kRows[] = {
    {"Add", Add},
    {"AveragePool", AveragePool},
    {"BatchNormalization", BatchNormalization},
    {"Conv", Conv},
    {"Div", Arithmetic},
    {"Dropout", Dropout},
    {"Gemm", Gemm},
    {"GlobalAveragePool", GlobalAveragePool},
    {"LayerNormalization", LayerNormalization},
    {"LogSoftmax", Softmax},
    {"MatMul", MatMul},
    {"MaxPool", MaxPool},
    {"Mul", Arithmetic},
    {"Pad", Pad},
    {"ReduceMean", ReduceMean},
    {"Relu", Relu},
    {"Sigmoid", Sigmoid},
    {"Softmax", Softmax},
    {"Sub", Arithmetic},
    {"Tanh", Tanh},
};

}  // namespace

std::span<const NodeRow> LayerRows() { return kRows; }

}  // namespace trireme
