// What is exported comes back: the same network, the same weights to the bit.
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "base/files.h"
#include "graph/layout.h"
#include "graph/models/models.h"
#include "graph/models/onnx_model.h"
#include "graph/models/onnx_transformer_test.h"
#include "graph/op.h"
#include "model/model_file.h"
#include "model/onnx/onnx_export.h"

namespace trireme {
namespace {

SavedModel MakeModel(const ModelOptions& options, SampleShape shape) {
  SavedModel model{.recipe = {},
                   .card = {shape, {"a", "b", "c"}, Normalizer::Identity(shape.channels)},
                   .graph = BuildModel(options, {shape.height, shape.width, shape.channels}, 3),
                   .layout = {},
                   .state = {},
                   .step = 7};
  model.recipe.model = options;
  model.layout = LayOut(model.graph);
  for (size_t i = 0; i < model.layout.state; ++i)
    model.state.push_back(0.5f + float(i % 997) / 997);
  return model;
}

// Without flattens of images of one pixel, which ONNX has and we need not.
std::vector<std::string> Operations(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) {
    const bool still = std::string_view(node.op->name) == "flatten" &&
                       graph.values[node.inputs[0]].shape == graph.values[node.outputs[0]].shape;
    const bool evaluates = std::string_view(node.op->name) == "dropout";  // a file has none
    if (!still && !evaluates) names.emplace_back(node.op->name);
  }
  return names;
}

std::vector<std::string> ParameterNames(const Graph& graph) {
  std::vector<std::string> names;
  for (const auto* specs : {&graph.parameters, &graph.statistics}) {
    for (const ParameterSpec& spec : *specs) names.push_back(spec.name);
  }
  return names;
}

struct Imported {
  std::string text;
  Graph graph;
  std::vector<float> state;  // where the file says nothing: 0
};

Imported Import(const std::string& file, const SampleShape& shape, int classes = 3) {
  const OnnxNetwork network(file);
  Imported imported{.text = network.text(), .graph = {}, .state = {}};
  imported.graph = BuildModel({.name = "onnx", .layers = network.text()},
                              {shape.height, shape.width, shape.channels}, classes);
  const Layout layout = LayOut(imported.graph);
  imported.state.resize(layout.state);
  ReadModel(imported.graph, layout, network, imported.state);
  return imported;
}

std::vector<float> WithoutGaps(const SavedModel& model) {
  std::vector<float> state(model.layout.state);
  for (const FileTensor& tensor : FileTensors(model.graph, model.layout)) {
    for (size_t i = tensor.range.begin; i < tensor.range.end(); ++i) state[i] = model.state[i];
  }
  return state;
}

void ExpectBack(const ModelOptions& options, const SampleShape& shape, bool any_classes = true) {
  SCOPED_TRACE(options.layers.empty() ? options.name : options.layers);
  const SavedModel model = MakeModel(options, shape);
  const TemporaryDirectory folder;
  ReplaceFile(folder / "net.onnx", OnnxBytes(model));
  const Imported back = Import(folder / "net.onnx", shape);
  EXPECT_EQ(Operations(back.graph), Operations(model.graph)) << back.text;
  EXPECT_EQ(ParameterNames(back.graph), ParameterNames(model.graph));
  EXPECT_TRUE(back.state == WithoutGaps(model)) << back.text;
  EXPECT_EQ(back.text.find("classes") != std::string::npos, any_classes) << back.text;
}

TEST(OnnxImport, GivesBackWhatWasExported) {
  for (const ModelDef& def : AllModels()) {
    if (def.read || std::string_view(def.name) > "resnet18") continue;  // deeper ones say no more
    ExpectBack({.name = def.name}, {32, 32, 3});
  }
  for (const char* layers :
       {"conv2d 5 3; flatten; relu; dense 4; dense classes",
        "flatten; batch_norm; dense 7; layer_norm; dense classes",
        "layer_norm; flatten; dense classes", "flatten; layer_norm affine=no; dense classes",
        "flatten; layer_norm; dense 12; dense classes",
        "residual { conv2d 3 kernel=3 padding=1; batch_norm 0.01; tanh }\nmax_pool 3 stride=2\n"
        "average_pool 2 stride=1 padding=1; pad_channels 6; pad_channels 8 stride=2; sigmoid\n"
        "global_average_pool; dense classes",
        "flatten; dense 9; residual { dense 9; relu } shortcut { dense 9 }; dense classes; sigmoid",
        "conv2d 8 4 stride=2; residual { conv2d 8 3 padding=1; relu; residual { conv2d 8 1 } }\n"
        "dropout 0.3; conv2d classes 1; global_average_pool"}) {
    ExpectBack({.name = "text", .layers = layers}, {7, 9, 3});
  }
}

TEST(OnnxImport, GivesBackTransformers) {
  ExpectBack({.name = "vit_ti"}, {16, 16, 3});
  const std::string layer =
      "define layer width heads {\n"
      "  residual { layer_norm tokens=yes epsilon=1e-6; q_: dense 3*width tokens=yes\n"
      "    attention heads; dense width tokens=yes bias=no }\n"
      "  residual { layer_norm tokens=yes affine=no; dense 2*width tokens=yes; gelu\n"
      "    dropout 0.2; dense width tokens=yes; tanh }\n"
      "}\n";
  for (const char* layers :
       {"conv2d 6 4 stride=4; class: class_token; position_embedding; repeat 2 { layer 6 2 }\n"
        "layer_norm tokens=yes; first_token; dense classes",
        "conv2d 6 3 stride=2; where: position_embedding; layer 6 1; layer 6 6\n"
        "global_average_pool; dense 7; gelu; dense classes",
        "conv2d 4 4 stride=4; gelu; layer 4 2; conv2d 5 1; flatten; dense classes",
        "conv2d 4 4 stride=4; layer 4 2; class_token; flatten; dense classes"}) {
    ExpectBack({.name = "text", .layers = layer + layers}, {12, 16, 3});
  }
  // No layer has as many channels as there are classes.
  ExpectBack({.name = "text",
              .layers = "conv2d 6 4; dense 9 tokens=yes; attention 1; global_average_pool"},
             {12, 16, 3}, false);
}

TEST(OnnxImport, TakesTheNormalisationOfPictures) {
  SavedModel model = MakeModel({.name = "text", .layers = "flatten; dense classes"}, {2, 2, 3});
  model.card.normalizer =
      KnownNormalizer(std::vector{0.5, 0.25, 0.125}, std::vector{0.5, 2.0, 4.0});
  const TemporaryDirectory folder;
  ReplaceFile(folder / "net.onnx", OnnxBytes(model));
  const WrittenNetwork written = ReadOnnxModel(folder / "net.onnx");
  ASSERT_EQ(written.mean.size(), 3u);
  const double mean[] = {0.5, 0.25, 0.125}, deviation[] = {0.5, 2, 4};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(written.mean[i], mean[i], 1e-6);
    EXPECT_NEAR(written.deviation[i], deviation[i], 1e-6);
  }
}

// How columns become numbers is of the data, and so is the unit of a number that is learnt.
TEST(OnnxImport, BeginsBehindTheColumnsOfATable) {
  SavedModel model = MakeModel({.name = "mlp:5-7-*"}, {1, 1, 5});
  model.card.codes.resize(3);
  model.card.codes[0].categories = {"red", "green", "blue"};
  for (const size_t numbers : {1, 2}) model.card.codes[numbers].fill = 0.5f;
  const TemporaryDirectory folder;
  ReplaceFile(folder / "net.onnx", OnnxBytes(model));
  EXPECT_TRUE(Import(folder / "net.onnx", {1, 1, 5}).state == WithoutGaps(model));

  SavedModel number = MakeModel({.name = "mlp"}, {1, 1, 4});
  number.graph = BuildModel({.name = "mlp"}, {1, 1, 4}, 1);
  number.layout = LayOut(number.graph);
  number.card.classes.clear();
  number.card.normalizer.SetTarget({.mean = 100, .deviation = 20});
  ReplaceFile(folder / "net.onnx", OnnxBytes(number));
  EXPECT_TRUE(Import(folder / "net.onnx", {1, 1, 4}, 1).state == WithoutGaps(number));
}

// Whatever bytes a file holds, it is read or refused.
TEST(OnnxImport, MutatedFilesAreReadOrRefused) {
  const SampleShape shape{5, 5, 2};
  std::vector<std::string> seeds;
  for (const char* layers :
       {"conv2d 2 3; batch_norm; relu; max_pool 2; flatten; dense classes",
        "residual { conv2d 2 1 } shortcut { pad_channels 2 }; layer_norm; average_pool 2; flatten; "
        "batch_norm; dense 3; tanh; dense classes",
        "conv2d 4 2; class_token; position_embedding; residual { layer_norm tokens=yes; dense 12 "
        "tokens=yes; attention 2; dense 4 tokens=yes; gelu }; first_token; dense classes"}) {
    seeds.push_back(OnnxBytes(MakeModel({.name = "text", .layers = layers}, shape)));
  }
  const SampleShape patches{8, 8, 3};
  const size_t first_of_patches = seeds.size();
  seeds.push_back(OnnxTransformer::Legacy(-1).Bytes(20));
  seeds.push_back(OnnxTransformer::Dynamo().Bytes(20));
  const TemporaryDirectory folder;
  std::mt19937 random(27);
  const auto below = [&](size_t limit) { return size_t(random()) % limit; };
  int read = 0, refused = 0;
  for (int round = 0; round < 1500; ++round) {
    const size_t seed = below(seeds.size());
    std::string bytes = seeds[seed];
    for (size_t times = 1 + below(3); times > 0 && !bytes.empty(); --times) {
      const size_t at = below(bytes.size());
      switch (below(5)) {
        case 0:
          bytes[at] = char(below(256));
          break;
        case 1:
          bytes[at] = char(bytes[at] ^ 1 << below(8));
          break;
        case 2:
          bytes.erase(at, 1 + below(6));
          break;
        case 3:
          bytes.insert(at, std::string(1 + below(10), below(2) ? '\xff' : '\0'));
          break;
        default:
          bytes.resize(at);
      }
    }
    OutputFile file(folder / "net.onnx");
    file.Write(bytes);
    file.Close();
    try {
      Import(folder / "net.onnx", seed < first_of_patches ? shape : patches);
      ++read;
    } catch (const Error& error) {
      EXPECT_GT(std::string(error.what()).size(), 10u);
      ++refused;
    }
  }
  EXPECT_GT(read, 15);
  EXPECT_GT(refused, 150);
}

}  // namespace
}  // namespace trireme
