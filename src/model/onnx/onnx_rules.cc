#include "model/onnx/onnx_rules.h"

#include "graph/layout.h"
#include "graph/op.h"

namespace trireme {

std::span<const float> OnnxRuleContext::parameter(int i) const {
  const Range& range = model.layout.parameters[size_t(node->parameters[size_t(i)])];
  return std::span(model.state).subspan(range.begin, range.size);
}

std::span<const float> OnnxRuleContext::statistic(int i) const {
  const Range& range = model.layout.statistics[size_t(node->statistics[size_t(i)])];
  return std::span(model.state).subspan(range.begin, range.size);
}

std::string OnnxRuleContext::NameOf(int parameter) const {
  return model.graph.parameters[size_t(node->parameters[size_t(parameter)])].name;
}

std::string OnnxRuleContext::NameOfStatistic(int statistic) const {
  return model.graph.statistics[size_t(node->statistics[size_t(statistic)])].name;
}

OnnxValue OnnxRuleContext::Image(int input) {
  OnnxValue value = inputs[size_t(input)];
  if (value.image) return value;
  value.name = onnx.Add("Unsqueeze", {value.name, onnx.Integers({2, 3})});
  value.image = true;
  return value;
}

OnnxValue OnnxRuleContext::Row(int input) {
  OnnxValue value = inputs[size_t(input)];
  if (!value.image) return value;
  value.name = onnx.Add("Flatten", {value.name}, OnnxAttributes().Int("axis", 1));
  value.image = false;
  value.flattened = value.shape;
  return value;
}

OnnxValue OnnxRuleContext::Made(std::string name, bool image, Shape flattened) const {
  const Shape shape = model.graph.values[size_t(node->outputs[0])].shape;
  return {std::move(name), shape, image, image || flattened == Shape{} ? shape : flattened};
}

std::vector<float> ChannelsFirst(std::span<const float> values, const Shape& image) {
  const size_t channels = size_t(image.channels), places = values.size() / channels;
  std::vector<float> moved(values.size());
  for (size_t p = 0; p < places; ++p) {
    for (size_t c = 0; c < channels; ++c) moved[c * places + p] = values[p * channels + c];
  }
  return moved;
}

namespace {

OnnxValue Elementwise(OnnxRuleContext& c, const char* op) {
  const OnnxValue& x = c.inputs[0];
  return c.Made(c.onnx.Add(op, {x.name}, {}, c.node->name), x.image, x.flattened);
}

OnnxValue Relu(OnnxRuleContext& c) { return Elementwise(c, "Relu"); }
OnnxValue Sigmoid(OnnxRuleContext& c) { return Elementwise(c, "Sigmoid"); }
OnnxValue Tanh(OnnxRuleContext& c) { return Elementwise(c, "Tanh"); }

// Of x, y = x (1 + erf(x / sqrt(2))) / 2: opset 17 has no Gelu yet.
OnnxValue Gelu(OnnxRuleContext& c) {
  const OnnxValue& x = c.inputs[0];
  const auto number = [&](const char* what, float value) {
    return c.onnx.Floats(c.node->name + what, {1}, std::vector<float>{value});
  };
  const std::string erf =
      c.onnx.Add("Erf", {c.onnx.Add("Mul", {x.name, number(".inv_sqrt2", 0.707106781f)})});
  const std::string below = c.onnx.Add("Add", {erf, number(".one", 1)});
  const std::string half = c.onnx.Add("Mul", {x.name, number(".half", 0.5f)});
  return c.Made(c.onnx.Add("Mul", {half, below}, {}, c.node->name), x.image, x.flattened);
}

// In evaluation it does nothing.
OnnxValue Dropout(OnnxRuleContext& c) { return c.inputs[0]; }

OnnxValue Flatten(OnnxRuleContext& c) {
  OnnxValue row = c.Row();
  row.shape = {.channels = int(row.shape.size())};
  return row;
}

OnnxValue Add(OnnxRuleContext& c) {
  const bool image = c.inputs[0].image || c.inputs[1].image;
  const OnnxValue a = image ? c.Image(0) : c.Row(0), b = image ? c.Image(1) : c.Row(1);
  return c.Made(c.onnx.Add("Add", {a.name, b.name}, {}, c.node->name), image, a.flattened);
}

OnnxValue Dense(OnnxRuleContext& c) {
  const OnnxValue x = c.Row();
  const std::span<const float> weight = c.parameter(0);  // [in][out]
  const int64_t in = x.shape.channels, out = c.attributes().channels;
  std::vector<float> turned(weight.size());  // [out][in], in the order of the input's values
  const int64_t channels = x.flattened.channels, places = in / channels;
  for (int64_t p = 0; p < places; ++p) {
    for (int64_t k = 0; k < channels; ++k) {
      for (int64_t o = 0; o < out; ++o) {
        turned[size_t(o * in + k * places + p)] = weight[size_t((p * channels + k) * out + o)];
      }
    }
  }
  std::vector<std::string> inputs = {x.name, c.onnx.Floats(c.NameOf(0), {out, in}, turned)};
  if (c.attributes().bias) inputs.push_back(c.onnx.Floats(c.NameOf(1), {out}, c.parameter(1)));
  return c.Made(c.onnx.Add("Gemm", inputs, OnnxAttributes().Int("transB", 1), c.node->name), false);
}

OnnxAttributes Window(const Attributes& a) {
  return OnnxAttributes()
      .Ints("kernel_shape", {a.kernel, a.kernel})
      .Ints("strides", {a.stride, a.stride})
      .Ints("pads", {a.padding, a.padding, a.padding, a.padding});
}

OnnxValue Conv2d(OnnxRuleContext& c) {
  const OnnxValue x = c.Image();
  const ParameterSpec& spec = c.model.graph.parameters[size_t(c.node->parameters[0])];
  std::vector<float> weight(size_t(spec.size()));
  ToFile(spec, c.parameter(0), weight);
  std::vector<std::string> inputs = {x.name, c.onnx.Floats(spec.name, FileShape(spec), weight)};
  if (c.attributes().bias) {
    inputs.push_back(c.onnx.Floats(c.NameOf(1), {c.attributes().channels}, c.parameter(1)));
  }
  return c.Made(c.onnx.Add("Conv", inputs, Window(c.attributes()), c.node->name), true);
}

OnnxValue MaxPool(OnnxRuleContext& c) {
  return c.Made(c.onnx.Add("MaxPool", {c.Image().name}, Window(c.attributes()), c.node->name),
                true);
}

OnnxValue AveragePool(OnnxRuleContext& c) {
  OnnxAttributes attributes = Window(c.attributes());
  attributes.Int("count_include_pad", 1);
  return c.Made(c.onnx.Add("AveragePool", {c.Image().name}, attributes, c.node->name), true);
}

OnnxValue GlobalAveragePool(OnnxRuleContext& c) {
  return c.Made(c.onnx.Add("GlobalAveragePool", {c.Image().name}, {}, c.node->name), true);
}

OnnxValue BatchNorm(OnnxRuleContext& c) {
  const OnnxValue& x = c.inputs[0];
  const std::vector<int64_t> shape = {x.shape.channels};
  const auto tensor = [&](const std::string& name, std::span<const float> values) {
    return x.image ? c.onnx.Floats(name, shape, values)
                   : c.onnx.Floats(name, shape, ChannelsFirst(values, x.flattened));
  };
  const std::vector<std::string> inputs = {
      x.name, tensor(c.NameOf(0), c.parameter(0)), tensor(c.NameOf(1), c.parameter(1)),
      tensor(c.NameOfStatistic(0), c.statistic(0)), tensor(c.NameOfStatistic(1), c.statistic(1))};
  return c.Made(c.onnx.Add("BatchNormalization", inputs,
                           OnnxAttributes().Float("epsilon", c.attributes().epsilon), c.node->name),
                x.image, x.flattened);
}

// All values of a sample are one population.
OnnxValue LayerNorm(OnnxRuleContext& c) {
  const OnnxValue& x = c.inputs[0];
  const std::vector<int64_t> shape =
      x.image ? std::vector<int64_t>{x.shape.channels, x.shape.height, x.shape.width}
              : std::vector<int64_t>{x.shape.channels};
  const auto tensor = [&](const std::string& name, std::span<const float> values) {
    return c.onnx.Floats(name, shape, ChannelsFirst(values, x.image ? x.shape : x.flattened));
  };
  std::vector<std::string> inputs = {x.name};
  if (c.attributes().affine) {
    inputs.push_back(tensor(c.NameOf(0), c.parameter(0)));
    inputs.push_back(tensor(c.NameOf(1), c.parameter(1)));
  } else {
    const std::vector<float> ones(size_t(x.shape.size()), 1.0f);
    inputs.push_back(tensor(c.node->name + ".ones", ones));
  }
  const OnnxAttributes attributes =
      OnnxAttributes().Int("axis", 1).Float("epsilon", c.attributes().epsilon);
  return c.Made(c.onnx.Add("LayerNormalization", inputs, attributes, c.node->name), x.image,
                x.flattened);
}

OnnxValue PadChannels(OnnxRuleContext& c) {
  const OnnxValue x = c.Image();
  const int64_t stride = c.attributes().stride;
  const std::string taken = c.onnx.Add(
      "Slice", {x.name, c.onnx.Integers({0, 0}), c.onnx.Integers({x.shape.height, x.shape.width}),
                c.onnx.Integers({2, 3}), c.onnx.Integers({stride, stride})});
  const int64_t more = c.attributes().channels - x.shape.channels;
  return c.Made(
      c.onnx.Add("Pad", {taken, c.onnx.Integers({0, 0, 0, 0, 0, more, 0, 0})}, {}, c.node->name),
      true);
}

struct OnnxRow {
  std::string_view op;
  OnnxRule rule;
};

constexpr OnnxRow kOnnxRows[] = {
    {"add", Add},
    {"average_pool", AveragePool},
    {"batch_norm", BatchNorm},
    {"conv2d", Conv2d},
    {"dense", Dense},
    {"dropout", Dropout},
    {"flatten", Flatten},
    {"gelu", Gelu},
    {"global_average_pool", GlobalAveragePool},
    {"layer_norm", LayerNorm},
    {"max_pool", MaxPool},
    {"pad_channels", PadChannels},
    {"relu", Relu},
    {"sigmoid", Sigmoid},
    {"stochastic_depth", Dropout},
    {"tanh", Tanh},
};

}  // namespace

OnnxRule FindOnnxRule(std::string_view op) {
  for (const OnnxRow& row : kOnnxRows) {
    if (row.op == op) return row.rule;
  }
  return nullptr;
}

}  // namespace trireme
