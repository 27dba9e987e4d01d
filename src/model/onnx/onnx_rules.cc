#include "model/onnx/onnx_rules.h"

#include <algorithm>
#include <cmath>

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

int64_t CountTokens(const Shape& shape) { return int64_t{shape.height} * shape.width; }

OnnxValue OnnxRuleContext::InOurOrder(OnnxValue row) {
  const Shape s = row.flattened;
  if (CountTokens(s) == 1 || s.channels == 1) return row;
  row.name =
      onnx.Add("Reshape", {row.name, onnx.Integers({0, int64_t{s.channels}, CountTokens(s)})});
  row.name = onnx.Add("Transpose", {row.name}, OnnxAttributes().Ints("perm", {0, 2, 1}));
  row.name = onnx.Add("Flatten", {row.name}, OnnxAttributes().Int("axis", 1));
  row.flattened = row.shape;
  return row;
}

OnnxValue OnnxRuleContext::Image(int input) {
  OnnxValue value = inputs[size_t(input)];
  if (value.form == OnnxForm::kRow) {
    value = InOurOrder(value);
    value.name = onnx.Add("Unsqueeze", {value.name, onnx.Integers({2, 3})});
  }
  if (value.form == OnnxForm::kTokens) {
    const Shape s = value.shape;
    value.name = onnx.Add("Transpose", {value.name}, OnnxAttributes().Ints("perm", {0, 2, 1}));
    value.name = onnx.Add("Reshape",
                          {value.name, onnx.Integers({0, int64_t{s.channels}, s.height, s.width})});
  }
  value.form = OnnxForm::kImage;
  return value;
}

OnnxValue OnnxRuleContext::Row(int input) {
  OnnxValue value = inputs[size_t(input)];
  if (value.form == OnnxForm::kRow) return value;
  value.name = onnx.Add("Flatten", {value.name}, OnnxAttributes().Int("axis", 1));
  value.flattened = value.shape;
  // The values of tokens lie in our order.
  if (value.form == OnnxForm::kTokens) value.flattened = {.channels = int(value.shape.size())};
  value.form = OnnxForm::kRow;
  return value;
}

OnnxValue OnnxRuleContext::Tokens(int input) {
  OnnxValue value = inputs[size_t(input)];
  if (value.form == OnnxForm::kRow) {
    value = InOurOrder(value);
    value.name = onnx.Add("Unsqueeze", {value.name, onnx.Integers({1})});
  }
  if (value.form == OnnxForm::kImage) {
    value.name = onnx.Add(
        "Reshape",
        {value.name, onnx.Integers({0, int64_t{value.shape.channels}, CountTokens(value.shape)})});
    value.name = onnx.Add("Transpose", {value.name}, OnnxAttributes().Ints("perm", {0, 2, 1}));
  }
  value.form = OnnxForm::kTokens;
  return value;
}

OnnxValue OnnxRuleContext::As(OnnxForm form, int input) {
  if (form == OnnxForm::kImage) return Image(input);
  return form == OnnxForm::kTokens ? Tokens(input) : Row(input);
}

OnnxValue OnnxRuleContext::Made(std::string name, OnnxForm form, Shape flattened) const {
  const Shape shape = model.graph.values[size_t(node->outputs[0])].shape;
  const bool row = form == OnnxForm::kRow;
  return {std::move(name), shape, form, row && flattened != Shape{} ? flattened : shape};
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
  return c.Made(c.onnx.Add(op, {x.name}, {}, c.node->name), x.form, x.flattened);
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
  return c.Made(c.onnx.Add("Mul", {half, below}, {}, c.node->name), x.form, x.flattened);
}

// In evaluation it does nothing.
OnnxValue Dropout(OnnxRuleContext& c) { return c.inputs[0]; }

OnnxValue Flatten(OnnxRuleContext& c) {
  OnnxValue row = c.Row();
  row.shape = {.channels = int(row.shape.size())};
  return row;
}

OnnxValue Add(OnnxRuleContext& c) {
  // The richer form of the two.
  const OnnxForm form = std::max(c.inputs[0].form, c.inputs[1].form);
  OnnxValue a = c.As(form, 0), b = c.As(form, 1);
  if (form == OnnxForm::kRow && a.flattened != b.flattened) {
    a = c.InOurOrder(a);
    b = c.InOurOrder(b);
  }
  return c.Made(c.onnx.Add("Add", {a.name, b.name}, {}, c.node->name), form, a.flattened);
}

// A product for each token; the weight stands as files have it.
OnnxValue DenseForTokens(OnnxRuleContext& c) {
  const OnnxValue x = c.Tokens();
  const ParameterSpec& spec = c.model.graph.parameters[size_t(c.node->parameters[0])];
  std::vector<float> weight(size_t(spec.size()));
  ToFile(spec, c.parameter(0), weight);
  const std::string turned =
      c.onnx.Add("Transpose", {c.onnx.Floats(spec.name, FileShape(spec), weight)},
                 OnnxAttributes().Ints("perm", {1, 0}));
  const std::string product = c.onnx.Add("MatMul", {x.name, turned}, {}, c.node->name);
  if (!c.attributes().bias) return c.Made(product, OnnxForm::kTokens);
  const std::string bias = c.onnx.Floats(c.NameOf(1), {c.attributes().channels}, c.parameter(1));
  return c.Made(c.onnx.Add("Add", {product, bias}), OnnxForm::kTokens);
}

OnnxValue Dense(OnnxRuleContext& c) {
  if (c.attributes().tokens) return DenseForTokens(c);
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
  return c.Made(c.onnx.Add("Gemm", inputs, OnnxAttributes().Int("transB", 1), c.node->name),
                OnnxForm::kRow);
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
  return c.Made(c.onnx.Add("Conv", inputs, Window(c.attributes()), c.node->name), OnnxForm::kImage);
}

OnnxValue MaxPool(OnnxRuleContext& c) {
  return c.Made(c.onnx.Add("MaxPool", {c.Image().name}, Window(c.attributes()), c.node->name),
                OnnxForm::kImage);
}

OnnxValue AveragePool(OnnxRuleContext& c) {
  OnnxAttributes attributes = Window(c.attributes());
  attributes.Int("count_include_pad", 1);
  return c.Made(c.onnx.Add("AveragePool", {c.Image().name}, attributes, c.node->name),
                OnnxForm::kImage);
}

OnnxValue GlobalAveragePool(OnnxRuleContext& c) {
  return c.Made(c.onnx.Add("GlobalAveragePool", {c.Image().name}, {}, c.node->name),
                OnnxForm::kImage);
}

OnnxValue BatchNorm(OnnxRuleContext& c) {
  const OnnxValue x = c.inputs[0].form == OnnxForm::kTokens ? c.Image() : c.inputs[0];
  const std::vector<int64_t> shape = {x.shape.channels};
  const auto tensor = [&](const std::string& name, std::span<const float> values) {
    return x.form == OnnxForm::kImage
               ? c.onnx.Floats(name, shape, values)
               : c.onnx.Floats(name, shape, ChannelsFirst(values, x.flattened));
  };
  const std::vector<std::string> inputs = {
      x.name, tensor(c.NameOf(0), c.parameter(0)), tensor(c.NameOf(1), c.parameter(1)),
      tensor(c.NameOfStatistic(0), c.statistic(0)), tensor(c.NameOfStatistic(1), c.statistic(1))};
  return c.Made(c.onnx.Add("BatchNormalization", inputs,
                           OnnxAttributes().Float("epsilon", c.attributes().epsilon), c.node->name),
                x.form, x.flattened);
}

// The channels of a token, or all values of a sample, are one population.
OnnxValue LayerNorm(OnnxRuleContext& c) {
  const bool tokens = c.attributes().tokens;
  OnnxValue x = c.inputs[0];
  if (tokens || x.form == OnnxForm::kTokens) x = tokens ? c.Tokens() : c.Image();
  const bool image = x.form == OnnxForm::kImage;
  const std::vector<int64_t> shape =
      image ? std::vector<int64_t>{x.shape.channels, x.shape.height, x.shape.width}
            : std::vector<int64_t>{x.shape.channels};
  const auto tensor = [&](const std::string& name, std::span<const float> values) {
    if (tokens) return c.onnx.Floats(name, shape, values);
    return c.onnx.Floats(name, shape, ChannelsFirst(values, image ? x.shape : x.flattened));
  };
  std::vector<std::string> inputs = {x.name};
  if (c.attributes().affine) {
    inputs.push_back(tensor(c.NameOf(0), c.parameter(0)));
    inputs.push_back(tensor(c.NameOf(1), c.parameter(1)));
  } else {
    const int64_t size = tokens ? x.shape.channels : x.shape.size();
    const std::vector<float> ones(size_t(size), 1.0f);
    inputs.push_back(tensor(c.node->name + ".ones", ones));
  }
  const OnnxAttributes attributes =
      OnnxAttributes().Int("axis", tokens ? 2 : 1).Float("epsilon", c.attributes().epsilon);
  return c.Made(c.onnx.Add("LayerNormalization", inputs, attributes, c.node->name), x.form,
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
      OnnxForm::kImage);
}

// softmax(q k^T / sqrt(channels of a head)) v: the tokens hold all q, then all k, then all v.
OnnxValue Attention(OnnxRuleContext& c) {
  const OnnxValue x = c.Tokens();
  const int64_t tokens = CountTokens(x.shape), heads = c.attributes().heads;
  const int64_t width = x.shape.channels / 3, each = width / heads;
  const auto turned = [&](const std::string& value, const std::vector<int64_t>& order) {
    return c.onnx.Add("Transpose", {value}, OnnxAttributes().Ints("perm", order));
  };
  const auto part = [&](int64_t i, const std::vector<int64_t>& order) {
    const std::string taken =
        c.onnx.Add("Slice", {x.name, c.onnx.Integers({i * width}),
                             c.onnx.Integers({(i + 1) * width}), c.onnx.Integers({2})});
    return turned(c.onnx.Add("Reshape", {taken, c.onnx.Integers({0, tokens, heads, each})}), order);
  };
  const auto scale = float(1 / std::sqrt(double(each)));
  const std::string factor = c.onnx.Floats(c.node->name + ".scale", {1}, std::span(&scale, 1));
  const std::string q = c.onnx.Add("Mul", {part(0, {0, 2, 1, 3}), factor});
  const std::string scores = c.onnx.Add("MatMul", {q, part(1, {0, 2, 3, 1})});
  const std::string shares =
      c.onnx.Add("Softmax", {scores}, OnnxAttributes().Int("axis", 3), c.node->name);
  const std::string y = c.onnx.Add("MatMul", {shares, part(2, {0, 2, 1, 3})});
  return c.Made(
      c.onnx.Add("Reshape", {turned(y, {0, 2, 1, 3}), c.onnx.Integers({0, tokens, width})}),
      OnnxForm::kTokens);
}

// The learnt token, once for each sample, before those of x.
OnnxValue ClassToken(OnnxRuleContext& c) {
  const OnnxValue x = c.Tokens();
  const int64_t channels = x.shape.channels;
  const std::string token = c.onnx.Floats(c.NameOf(0), {1, 1, channels}, c.parameter(0));
  const std::string samples =
      c.onnx.Add("Shape", {x.name}, OnnxAttributes().Int("start", 0).Int("end", 1));
  const std::string shape = c.onnx.Add("Concat", {samples, c.onnx.Integers({1, channels})},
                                       OnnxAttributes().Int("axis", 0));
  const std::string all = c.onnx.Add("Expand", {token, shape});
  return c.Made(c.onnx.Add("Concat", {all, x.name}, OnnxAttributes().Int("axis", 1), c.node->name),
                OnnxForm::kTokens);
}

OnnxValue PositionEmbedding(OnnxRuleContext& c) {
  const OnnxValue x = c.Tokens();
  const std::string positions =
      c.onnx.Floats(c.NameOf(0), {1, CountTokens(x.shape), x.shape.channels}, c.parameter(0));
  return c.Made(c.onnx.Add("Add", {x.name, positions}, {}, c.node->name), OnnxForm::kTokens);
}

OnnxValue FirstToken(OnnxRuleContext& c) {
  const OnnxValue x = c.Tokens();
  const std::string first = c.onnx.Add(
      "Slice", {x.name, c.onnx.Integers({0}), c.onnx.Integers({1}), c.onnx.Integers({1})});
  return c.Made(c.onnx.Add("Squeeze", {first, c.onnx.Integers({1})}, {}, c.node->name),
                OnnxForm::kRow);
}

struct OnnxRow {
  std::string_view op;
  OnnxRule rule;
};

constexpr OnnxRow kOnnxRows[] = {
    {"add", Add},
    {"attention", Attention},
    {"average_pool", AveragePool},
    {"batch_norm", BatchNorm},
    {"class_token", ClassToken},
    {"conv2d", Conv2d},
    {"dense", Dense},
    {"dropout", Dropout},
    {"first_token", FirstToken},
    {"flatten", Flatten},
    {"gelu", Gelu},
    {"global_average_pool", GlobalAveragePool},
    {"layer_norm", LayerNorm},
    {"max_pool", MaxPool},
    {"pad_channels", PadChannels},
    {"position_embedding", PositionEmbedding},
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
