#include "model/onnx/onnx_export.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <stdexcept>
#include <string_view>

#include "base/error.h"
#include "graph/layout.h"
#include "graph/models/layer_kinds.h"
#include "graph/models/models.h"
#include "graph/op.h"
#include "model/onnx/onnx_rules.h"
#include "record/json.h"

namespace trireme {
namespace {

// A reader of protocol buffers that shares nothing with the writer.
struct Field {
  uint64_t number = 0;  // where it is a number
  std::string_view bytes;
};
using Fields = std::multimap<int, Field>;

Fields Read(std::string_view text) {
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(text.at(at++));
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    throw std::runtime_error("a number without end");
  };
  Fields fields;
  while (at < text.size()) {
    const uint64_t tag = varint();
    Field field;
    if ((tag & 7) == 0) {
      field.number = varint();
    } else {
      const size_t size = (tag & 7) == 5 ? 4 : size_t(varint());
      if (size > text.size() - at) throw std::runtime_error("beyond the end");
      field.bytes = text.substr(at, size);
      at += size;
    }
    fields.emplace(int(tag >> 3), field);
  }
  return fields;
}

std::string_view TextOf(const Fields& fields, int number) {
  const auto found = fields.find(number);
  return found == fields.end() ? std::string_view() : found->second.bytes;
}

std::vector<Field> All(const Fields& fields, int number) {
  std::vector<Field> all;
  const auto [begin, end] = fields.equal_range(number);
  for (auto at = begin; at != end; ++at) all.push_back(at->second);
  return all;
}

struct ReadTensor {
  std::vector<int64_t> shape;
  uint64_t type = 0;
  std::string_view raw;
  std::vector<float> floats() const {
    std::vector<float> values(raw.size() / 4);
    std::memcpy(values.data(), raw.data(), raw.size());
    return values;
  }
};

struct ReadValue {
  uint64_t type = 0;
  std::vector<std::string> shape;  // numbers, or a name for one that is free
};

struct ReadNode {
  std::string name, op;
  std::vector<std::string> inputs, outputs;
};

struct ReadOnnx {
  explicit ReadOnnx(std::string_view bytes) {
    const Fields model = Read(bytes);
    ir_version = model.find(1)->second.number;
    for (const Field& opset : All(model, 8)) {
      const Fields fields = Read(opset.bytes);
      opsets[std::string(TextOf(fields, 1))] = fields.find(2)->second.number;
    }
    for (const Field& fact : All(model, 14)) {
      const Fields fields = Read(fact.bytes);
      facts[std::string(TextOf(fields, 1))] = TextOf(fields, 2);
    }
    const Fields graph = Read(TextOf(model, 7));
    for (const Field& field : All(graph, 1)) {
      const Fields node = Read(field.bytes);
      ReadNode read{.name = std::string(TextOf(node, 3)),
                    .op = std::string(TextOf(node, 4)),
                    .inputs = {},
                    .outputs = {}};
      for (const Field& input : All(node, 1)) read.inputs.emplace_back(input.bytes);
      for (const Field& output : All(node, 2)) read.outputs.emplace_back(output.bytes);
      nodes.push_back(read);
    }
    for (const Field& field : All(graph, 5)) {
      const Fields tensor = Read(field.bytes);
      ReadTensor read{.shape = {}, .type = tensor.find(2)->second.number, .raw = TextOf(tensor, 9)};
      for (const Field& extent : All(tensor, 1)) read.shape.push_back(int64_t(extent.number));
      EXPECT_TRUE(tensors.emplace(TextOf(tensor, 8), read).second) << TextOf(tensor, 8);
    }
    ReadValues(graph, 11, inputs);
    ReadValues(graph, 12, outputs);
  }

  static void ReadValues(const Fields& graph, int number,
                         std::map<std::string, ReadValue>& values) {
    for (const Field& field : All(graph, number)) {
      const Fields value = Read(field.bytes);
      const Fields tensor = Read(TextOf(Read(TextOf(value, 2)), 1));
      ReadValue& read = values[std::string(TextOf(value, 1))];
      read.type = tensor.find(1)->second.number;
      for (const Field& dim : All(Read(TextOf(tensor, 2)), 1)) {
        const Fields fields = Read(dim.bytes);
        read.shape.push_back(fields.contains(1) ? std::to_string(fields.find(1)->second.number)
                                                : std::string(TextOf(fields, 2)));
      }
    }
  }

  // Each value is made once, before it is read, and what is read is made.
  void ExpectSound() const {
    std::set<std::string> made, called;
    for (const auto& [name, tensor] : tensors) {
      int64_t size = tensor.type == 7 ? 8 : 4;
      for (const int64_t extent : tensor.shape) size *= extent;
      EXPECT_EQ(size_t(size), tensor.raw.size()) << name;
      made.insert(name);
    }
    for (const auto& [name, value] : inputs) EXPECT_TRUE(made.insert(name).second) << name;
    for (const ReadNode& node : nodes) {
      // onnxruntime refuses two of one name.
      EXPECT_TRUE(node.name.empty() || called.insert(node.name).second) << node.name;
      for (const std::string& input : node.inputs) EXPECT_TRUE(made.contains(input)) << input;
      for (const std::string& output : node.outputs) EXPECT_TRUE(made.insert(output).second);
    }
    for (const auto& [name, value] : outputs) EXPECT_TRUE(made.contains(name)) << name;
  }

  int Count(const std::string& op) const {
    return int(std::ranges::count(nodes, op, &ReadNode::op));
  }

  uint64_t ir_version = 0;
  std::map<std::string, uint64_t> opsets;
  std::map<std::string, std::string> facts;
  std::vector<ReadNode> nodes;
  std::map<std::string, ReadTensor> tensors;
  std::map<std::string, ReadValue> inputs, outputs;
};

SavedModel MakeModel(const ModelOptions& options, SampleShape shape, ColumnCodes codes = {}) {
  SavedModel model{
      .recipe = {},
      .card = {shape, {"a", "b \"quoted\"", "c"}, Normalizer::Identity(shape.channels)},
      .graph = BuildModel(options, {shape.height, shape.width, shape.channels}, 3),
      .layout = {},
      .state = {},
      .step = 7};
  model.recipe.model = options;
  model.card.codes = std::move(codes);
  model.layout = LayOut(model.graph);
  for (size_t i = 0; i < model.layout.state; ++i) model.state.push_back(float(i % 997));
  return model;
}

TEST(Onnx, HoldsEveryModelWithItsWeights) {
  for (const ModelDef& def : AllModels()) {
    if (std::string_view(def.name) == "vit_b") continue;  // as vit_ti, but large
    ModelOptions options{.name = def.name};
    if (def.read) options.layers = "conv2d 4 3; pad_channels 6 stride=2; flatten; dense classes";
    const SavedModel model = MakeModel(options, {32, 32, 3});
    const std::string bytes = OnnxBytes(model);
    const ReadOnnx read(bytes);
    read.ExpectSound();
    EXPECT_EQ(read.ir_version, 8u);
    EXPECT_EQ(read.opsets, (std::map<std::string, uint64_t>{{"", 17}}));
    EXPECT_EQ(read.facts.at("classes"), Json(model.card.classes).Text());
    EXPECT_EQ(read.facts.at("step"), "7");
    EXPECT_EQ(read.inputs.at("input").shape,
              (std::vector<std::string>{"samples", "3", "32", "32"}));
    EXPECT_EQ(read.outputs.at("logits").shape, (std::vector<std::string>{"samples", "3"}));
    EXPECT_EQ(read.outputs.size(), 2u);
    for (const auto* specs : {&model.graph.parameters, &model.graph.statistics}) {
      for (const ParameterSpec& spec : *specs) {
        EXPECT_EQ(read.tensors.at(spec.name).shape, FileShape(spec)) << spec.name;
      }
    }
  }
}

// As a file of PyTorch's has them: the order of channels first.
TEST(Onnx, PutsWeightsIntoItsOrder) {
  for (const char* layers : {"conv2d 5 3; flatten; relu; dense 4; dense classes"}) {
    const SavedModel model = MakeModel({.name = "text", .layers = layers}, {6, 7, 3});
    const std::string bytes = OnnxBytes(model);
    const ReadOnnx read(bytes);
    for (size_t i = 0; i < model.graph.parameters.size(); ++i) {
      const ParameterSpec& spec = model.graph.parameters[i];
      const Range& range = model.layout.parameters[i];
      std::vector<float> file(range.size);
      ToFile(spec, std::span(model.state).subspan(range.begin, range.size), file);
      EXPECT_EQ(read.tensors.at(spec.name).floats(), file) << spec.name;
    }
  }
  // Behind a flatten a norm's values are in that order, too.
  SavedModel model =
      MakeModel({.name = "text", .layers = "flatten; batch_norm; dense classes"}, {2, 1, 2});
  const Range& scale = model.layout.parameters[0];
  for (size_t i = 0; i < 4; ++i) model.state[scale.begin + i] = float(i);
  const std::string bytes = OnnxBytes(model);
  EXPECT_EQ(ReadOnnx(bytes).tensors.at("1.weight").floats(), (std::vector<float>{0, 2, 1, 3}));
}

TEST(Onnx, TakesColumnsAsTheyAre) {
  const ColumnCode number{.fill = 2.5f, .flagged = true}, plain{.fill = 1.0f};
  const ColumnCode text{.categories = {"red", "green"}};
  SavedModel model = MakeModel({.name = "mlp"}, {1, 1, 3}, {number, plain});
  const std::string bytes = OnnxBytes(model);
  const ReadOnnx numbers(bytes);
  numbers.ExpectSound();
  EXPECT_EQ(numbers.inputs.at("input").shape, (std::vector<std::string>{"samples", "2"}));
  EXPECT_EQ(numbers.Count("IsNaN"), 1);

  SavedModel mixed = MakeModel({.name = "mlp"}, {1, 1, 5}, {number, text, plain});
  mixed.card.columns = {{"logits", "colour", "high"}, "class", {}};
  const std::string mixed_bytes = OnnxBytes(mixed);
  const ReadOnnx columns(mixed_bytes);
  columns.ExpectSound();
  EXPECT_EQ(columns.inputs.size(), 3u);
  EXPECT_EQ(columns.inputs.at("colour").type, 8u);  // text
  EXPECT_EQ(columns.inputs.at("high").shape, (std::vector<std::string>{"samples", "1"}));
  EXPECT_EQ(columns.opsets.at("ai.onnx.ml"), 3u);
  EXPECT_EQ(columns.Count("OneHotEncoder"), 1);
}

TEST(Onnx, HasSoftmaxOnlyWhereTheLossHas) {
  for (const auto& [loss, count] :
       std::map<std::string, int>{{"cross-entropy", 1}, {"squared-error", 0}}) {
    const std::string bytes = OnnxBytes(MakeModel({.name = "mlp", .loss = loss}, {1, 1, 4}));
    EXPECT_EQ(ReadOnnx(bytes).Count("Softmax"), count) << loss;
  }
}

TEST(Onnx, PredictsNumbersInTheirOwnUnit) {
  SavedModel model = MakeModel({.name = "mlp"}, {1, 1, 4});
  model.graph = BuildModel({.name = "mlp"}, {1, 1, 4}, 1);
  model.layout = LayOut(model.graph);
  model.card.classes.clear();
  model.card.normalizer.SetTarget({.mean = 100, .deviation = 20});
  const std::string bytes = OnnxBytes(model);
  const ReadOnnx read(bytes);
  read.ExpectSound();
  EXPECT_EQ(read.outputs.size(), 1u);
  EXPECT_EQ(read.outputs.at("prediction").shape, (std::vector<std::string>{"samples", "1"}));
  EXPECT_EQ(read.tensors.at("data.target_deviation").floats(), std::vector<float>{20});
  EXPECT_EQ(read.tensors.at("data.target_mean").floats(), std::vector<float>{100});
}

TEST(Onnx, NamesLayersWithoutARuleByOperation) {
  const std::string layers =
      "conv2d 6 4; a: relu; b: tanh; c: relu; d: relu; e: relu; flatten; dense classes";
  SavedModel model = MakeModel({.name = "text", .layers = layers}, {8, 8, 3});
  for (Node& node : model.graph.nodes) {
    if (std::string_view(node.op->name) == "relu") node.op = &FindOp("relu_grad");
    if (std::string_view(node.op->name) == "tanh") node.op = &FindOp("tanh_grad");
  }
  try {
    OnnxBytes(model);
    ADD_FAILURE() << "written";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "the network cannot be written as ONNX: there is no rule for relu_grad (a, c, d "
                 "and 1 more), tanh_grad (b)");
  }
}

TEST(Onnx, WritesTransformers) {
  const std::string layers =
      "conv2d 6 4 stride=4; class_token; position_embedding; residual { layer_norm tokens=yes; "
      "dense 18 tokens=yes; attention 2; dense 6 tokens=yes bias=no; stochastic_depth 0.1 }; "
      "first_token; dense classes";
  const SavedModel model = MakeModel({.name = "text", .layers = layers}, {8, 8, 3});
  const std::string bytes = OnnxBytes(model);
  const ReadOnnx read(bytes);
  read.ExpectSound();
  EXPECT_EQ(read.Count("LayerNormalization"), 1);
  EXPECT_EQ(read.Count("Softmax"), 2);
  EXPECT_EQ(read.Count("MatMul"), 4);
}

// Behind a flatten the file has channels first. What reads the row as tokens, as a pixel or beside
// another row does not; batch-norm and dense layers have their parameters in the file's order.
TEST(Onnx, TurnsARowOfAnImageWhereItIsNoneAnyMore) {
  const std::pair<const char*, int> tried[] = {
      {"flatten; layer_norm tokens=yes; dense classes", 1},
      {"flatten; dense 5 tokens=yes; dense classes", 1 + 1},  // and its weight
      {"flatten; conv2d 5 1; dense classes", 1},
      {"flatten; residual { dense 192 }; dense classes", 1},
      {"flatten; dense 9; layer_norm tokens=yes; dense classes", 0},
      {"flatten; batch_norm; residual { relu }; dense classes", 0},
      {"flatten; dense 9; residual { dense 9 }; dense classes", 0}};
  for (const auto& [layers, turns] : tried) {
    const std::string bytes = OnnxBytes(MakeModel({.name = "text", .layers = layers}, {8, 8, 3}));
    const ReadOnnx read(bytes);
    read.ExpectSound();
    EXPECT_EQ(read.Count("Transpose"), turns) << layers;
  }
}

TEST(Onnx, WritesGeluByTheErrorFunction) {
  const SavedModel model = MakeModel(
      {.name = "text", .layers = "conv2d 4 3; gelu; flatten; gelu; dense classes"}, {6, 6, 3});
  const std::string bytes = OnnxBytes(model);
  const ReadOnnx read(bytes);
  read.ExpectSound();
  EXPECT_EQ(read.Count("Erf"), 2);
}

TEST(Onnx, HasARuleForEveryLayer) {
  for (const LayerKind& kind : LayerKinds()) EXPECT_TRUE(FindOnnxRule(kind.op)) << kind.op;
  EXPECT_TRUE(FindOnnxRule("add"));
  EXPECT_FALSE(FindOnnxRule("tally"));
}

}  // namespace
}  // namespace trireme
