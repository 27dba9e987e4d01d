#include "graph/models/models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/layout.h"
#include "graph/models/losses.h"
#include "graph/op.h"

namespace trireme {
namespace {

std::vector<std::string> Ops(const Graph& graph) {
  std::vector<std::string> ops;
  for (const Node& node : graph.nodes) ops.push_back(node.op->name);
  return ops;
}

std::vector<std::string> Names(const Graph& graph) {
  std::vector<std::string> names;
  for (const ParameterSpec& spec : graph.parameters) names.push_back(spec.name);
  return names;
}

struct Known {
  const char* name;
  int64_t parameters;
  double multiply_adds;  // as torchvision's documentation states them
};

TEST(ResNet, HasTorchvisionsSizes) {
  const Known known[] = {{"resnet18", 11689512, 1.81e9},
                         {"resnet34", 21797672, 3.66e9},
                         {"resnet50", 25557032, 4.09e9},
                         {"resnet101", 44549160, 7.80e9},
                         {"resnet152", 60192808, 11.51e9}};
  for (const Known& want : known) {
    const ModelSize size = Measure(BuildModel({.name = want.name}, {224, 224, 3}, 1000));
    EXPECT_EQ(size.parameters, want.parameters) << want.name;
    EXPECT_NEAR(size.multiply_adds, want.multiply_adds, 0.006e9) << want.name;
  }
}

TEST(ResNet, HasTorchvisionsNames) {
  const Graph graph = BuildModel({.name = "resnet50"}, {224, 224, 3}, 1000);
  const auto names = Names(graph);
  EXPECT_EQ(names.size(), 161u);
  EXPECT_EQ(
      std::vector(names.begin(), names.begin() + 6),
      (std::vector<std::string>{"conv1.weight", "bn1.weight", "bn1.bias", "layer1.0.conv1.weight",
                                "layer1.0.bn1.weight", "layer1.0.bn1.bias"}));
  for (const char* name : {"layer1.0.downsample.0.weight", "layer1.0.downsample.1.bias",
                           "layer4.2.bn3.weight", "fc.weight", "fc.bias"}) {
    EXPECT_TRUE(std::ranges::find(names, name) != names.end()) << name;
  }
  EXPECT_EQ(graph.statistics.front().name, "bn1.running_mean");
  EXPECT_EQ(FileShape(graph.parameters[0]), (std::vector<int64_t>{64, 3, 7, 7}));
}

TEST(ResNet, HasTheStrideInTheWideConvolution) {
  const Graph graph = BuildModel({.name = "resnet50"}, {224, 224, 3}, 1000);
  for (const Node& node : graph.nodes) {
    if (!node.name.starts_with("layer2.0.conv")) continue;
    EXPECT_EQ(node.attributes.stride, node.name.ends_with("conv2") ? 2 : 1) << node.name;
  }
}

TEST(ResNet, ChoosesItsStemByTheImage) {
  auto stem = [](const char* option, int px) {
    const Graph graph = BuildModel({.name = "resnet18", .stem = option}, {px, px, 3}, 10);
    const auto ops = Ops(graph);
    const bool pools = std::ranges::find(ops, "max_pool") != ops.end();
    EXPECT_EQ(pools, graph.nodes[0].attributes.kernel == 7);
    return graph.nodes[0].attributes.kernel;
  };
  EXPECT_EQ(stem("auto", 64), 3);
  EXPECT_EQ(stem("auto", 65), 7);
  EXPECT_EQ(stem("3x3", 96), 3);
  EXPECT_EQ(stem("7x7", 32), 7);
}

TEST(Vit, HasTheSizesOfTorchvisionAndDeit) {
  const Known known[] = {
      {"vit_ti", 5717416, 1.26e9}, {"vit_s", 22050664, 4.61e9}, {"vit_b", 86567656, 17.56e9}};
  for (const Known& want : known) {
    const ModelSize size = Measure(BuildModel({.name = want.name}, {224, 224, 3}, 1000));
    EXPECT_EQ(size.parameters, want.parameters) << want.name;
    EXPECT_NEAR(size.multiply_adds, want.multiply_adds, 0.01 * want.multiply_adds) << want.name;
  }
}

TEST(Vit, HasTorchvisionsNames) {
  const Graph graph = BuildModel({.name = "vit_b"}, {224, 224, 3}, 1000);
  const auto names = Names(graph);
  EXPECT_EQ(names.size(), 152u);
  EXPECT_EQ(
      std::vector(names.begin(), names.begin() + 12),
      (std::vector<std::string>{
          "conv_proj.weight", "conv_proj.bias", "class_token", "encoder.pos_embedding",
          "encoder.layers.encoder_layer_0.ln_1.weight", "encoder.layers.encoder_layer_0.ln_1.bias",
          "encoder.layers.encoder_layer_0.self_attention.in_proj_weight",
          "encoder.layers.encoder_layer_0.self_attention.in_proj_bias",
          "encoder.layers.encoder_layer_0.self_attention.out_proj.weight",
          "encoder.layers.encoder_layer_0.self_attention.out_proj.bias",
          "encoder.layers.encoder_layer_0.ln_2.weight",
          "encoder.layers.encoder_layer_0.ln_2.bias"}));
  for (const char* name : {"encoder.layers.encoder_layer_11.mlp.0.weight",
                           "encoder.layers.encoder_layer_11.mlp.3.bias", "encoder.ln.weight",
                           "heads.head.weight", "heads.head.bias"}) {
    EXPECT_TRUE(std::ranges::find(names, name) != names.end()) << name;
  }
  const auto shape = [&](const char* name) {
    return FileShape(*std::ranges::find(graph.parameters, name, &ParameterSpec::name));
  };
  EXPECT_EQ(shape("class_token"), (std::vector<int64_t>{1, 1, 768}));
  EXPECT_EQ(shape("encoder.pos_embedding"), (std::vector<int64_t>{1, 197, 768}));
  EXPECT_EQ(shape("encoder.layers.encoder_layer_3.self_attention.in_proj_weight"),
            (std::vector<int64_t>{2304, 768}));
}

// Tokens are small patches of small images; dropped branches come in with depth.
TEST(Vit, FitsItsImages) {
  const Graph graph = BuildModel({.name = "vit_ti", .stochastic_depth = 0.1}, {32, 32, 3}, 10);
  EXPECT_EQ(graph.nodes[0].attributes.kernel, 4);
  EXPECT_EQ(graph.values[graph.nodes[1].outputs[0]].shape, (Shape{65, 1, 192}));
  std::vector<float> rates;
  for (const Node& node : graph.nodes) {
    if (node.op == &FindOp("stochastic_depth")) rates.push_back(node.attributes.rate);
  }
  EXPECT_EQ(rates.size(), 22u);  // none in the first layer
  EXPECT_TRUE(std::ranges::is_sorted(rates));
  EXPECT_FLOAT_EQ(rates.back(), 0.1f);
  for (const Shape input : {Shape{30, 32, 3}, Shape{224, 220, 3}, Shape{3, 3, 1}}) {
    EXPECT_THROW(BuildModel({.name = "vit_ti"}, input, 10), UsageError) << ToText(input);
  }
}

TEST(Mlp, IsNamedLikeASequential) {
  const Graph graph = BuildModel({}, {.channels = 4}, 3);
  EXPECT_EQ(Ops(graph), (std::vector<std::string>{"dense", "relu", "dense", "relu", "dense",
                                                  "softmax_cross_entropy"}));
  EXPECT_EQ(Names(graph),
            (std::vector<std::string>{"layers.0.weight", "layers.0.bias", "layers.2.weight",
                                      "layers.2.bias", "layers.4.weight", "layers.4.bias"}));
}

TEST(Mlp, InTheClassicSettingNormalisesHiddenLayersAndSquashesOutputs) {
  const Graph graph = BuildModel({.name = "mlp:784-200-10",
                                  .activation = "sigmoid",
                                  .norm = "layer-plain",
                                  .loss = "squared-error"},
                                 {28, 28, 1}, 10);
  EXPECT_EQ(Ops(graph), (std::vector<std::string>{"flatten", "dense", "layer_norm", "sigmoid",
                                                  "dense", "sigmoid", "squared_error"}));
  EXPECT_EQ(graph.parameters.size(), 4u);  // the norm has none
}

TEST(Mlp, AStarTakesTheSizeFromTheData) {
  const auto sizes = [](const std::string& name) {
    return Measure(BuildModel({.name = name}, {1, 1, 7}, 3)).parameters;
  };
  EXPECT_EQ(sizes("mlp:*-5-*"), sizes("mlp:7-5-3"));
  EXPECT_EQ(sizes("mlp:*-5-3"), sizes("mlp:7-5-3"));
  EXPECT_EQ(sizes("mlp:*-*"), sizes("mlp:7-3"));
  for (const char* name : {"mlp:*", "mlp:*-*-*", "mlp:7-*5-3", "mlp:*--3", "mlp:**-3"}) {
    EXPECT_THROW(sizes(name), UsageError) << name;
  }
}

TEST(Mlp, ANumberIsNotSquashed) {
  for (const char* loss : {"auto", "squared-error"}) {
    const Graph graph =
        BuildModel({.name = "mlp:4-8-1", .activation = "tanh", .loss = loss}, {.channels = 4}, 1);
    EXPECT_EQ(Ops(graph), (std::vector<std::string>{"dense", "tanh", "dense", "squared_error"}));
  }
}

TEST(Mlp, ALossThatComparesOutputsSquashesThem) {
  for (const LossKind& loss : LossKinds()) {
    const Graph graph = BuildModel({.activation = "tanh", .loss = loss.name}, {.channels = 4}, 3);
    std::vector<std::string> ops{"dense", "tanh", "dense", "tanh", "dense"};
    if (loss.compares_outputs) ops.push_back("tanh");
    ops.push_back(loss.op);
    EXPECT_EQ(Ops(graph), ops);
  }
}

TEST(Cnn, IsSmall) {
  for (Shape input : {Shape{28, 28, 1}, Shape{32, 32, 3}}) {
    const double work = Measure(BuildModel({.name = "cnn"}, input, 10)).multiply_adds;
    EXPECT_GT(work, 5e6);
    EXPECT_LT(work, 10e6);
  }
}

TEST(KindOf, ChoosesAModelForEveryInput) {
  EXPECT_STREQ(KindOf({1, 1, 20}).model, "mlp");
  EXPECT_STREQ(KindOf({28, 28, 1}).model, "cnn");
  EXPECT_STREQ(KindOf({64, 64, 3}).model, "resnet18");
  for (const Shape input : {Shape{1, 1, 1}, {2, 90, 3}, {4, 4, 1}, {48, 48, 3}, {49, 5, 3}}) {
    EXPECT_NO_THROW(BuildModel({.name = KindOf(input).model}, input, 2)) << ToText(input);
  }
}

TEST(BuildModel, RefusesWhatAModelCannotUse) {
  auto refused = [](const ModelOptions& options, const char* word) {
    try {
      BuildModel(options, {28, 28, 1}, 10);
    } catch (const UsageError& e) {
      return std::string(e.what()).find(word) != std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(refused({.name = "mlp:783-10"}, "784"));
  EXPECT_TRUE(refused({.name = "mlp:784-20-11"}, "10"));
  for (const char* sizes : {"784--10", "784-0-10", "a", "784-10-", "784", "784-99999999999-10"}) {
    EXPECT_TRUE(refused({.name = std::string("mlp:") + sizes}, "mlp:")) << sizes;
  }
  EXPECT_TRUE(refused({.name = "mlp:"}, "colon"));
  EXPECT_TRUE(refused({.name = "lstm"}, "resnet50"));
  EXPECT_TRUE(refused({.name = "cnn:3"}, "colon"));
  EXPECT_TRUE(refused({.name = "mlp", .activation = "swish"}, "model.activation"));
  EXPECT_TRUE(refused({.name = "mlp", .norm = "group"}, "model.norm"));
  EXPECT_TRUE(refused({.name = "mlp", .loss = "hinge"}, "model.loss"));
  for (const char* loss : {"squared-error", "absolute-error"}) {
    EXPECT_TRUE(refused({.name = "mlp", .loss = loss, .smoothing = 0.1f}, "smoothing")) << loss;
  }
  EXPECT_TRUE(refused({.name = "mlp", .smoothing = 1.5f}, "smoothing"));
  EXPECT_TRUE(refused({.name = "mlp", .dropout = 1}, "model.dropout"));
  EXPECT_TRUE(refused({.name = "mlp:784-10", .dropout = 0.5}, "model.dropout"));
  EXPECT_TRUE(refused({.name = "mlp", .stem = "3x3"}, "model.stem"));
  EXPECT_TRUE(refused({.name = "cnn", .stem = "3x3"}, "model.stem"));
  EXPECT_TRUE(refused({.name = "resnet18", .activation = "tanh"}, "relu"));
  EXPECT_TRUE(refused({.name = "resnet18", .dropout = 0.1}, "dropout"));
  EXPECT_TRUE(refused({.name = "resnet18", .stem = "5x5"}, "model.stem"));
  for (const char* name : {"mlp", "cnn", "resnet18"}) {
    EXPECT_TRUE(refused({.name = name, .stochastic_depth = 0.1}, "model.stochastic_depth")) << name;
  }
  EXPECT_TRUE(refused({.name = "vit_ti", .activation = "tanh"}, "gelu"));
  EXPECT_TRUE(refused({.name = "vit_ti", .norm = "batch"}, "layer-norm"));
  EXPECT_TRUE(refused({.name = "vit_ti", .stem = "3x3"}, "model.stem"));
  EXPECT_TRUE(refused({.name = "vit_ti", .stochastic_depth = 1}, "model.stochastic_depth"));
  EXPECT_THROW(BuildModel({.name = "cnn"}, {3, 3, 1}, 10), UsageError);
  EXPECT_THROW(BuildModel({.name = "mlp"}, {1, 1, 4}, 0), UsageError);
  EXPECT_THROW(BuildModel({.name = "mlp", .loss = "cross-entropy"}, {1, 1, 4}, 1), UsageError);
}

TEST(ModelOptions, DescribesEveryKey) {
  ModelOptions options;
  std::vector<Option> rows;
  OptionTable<ModelOptions> table(options, rows);
  Describe(table);
  EXPECT_EQ(rows.size(), 10u);
  for (Option& row : rows) EXPECT_FALSE(row.help().empty()) << row.key();
}

TEST(ModelsPage, ListsEveryModel) {
  const std::string page = ModelsPage();
  for (const ModelDef& model : AllModels()) {
    EXPECT_NE(page.find(model.pattern), std::string::npos);
  }
  EXPECT_NE(page.find("11689512"), std::string::npos);
}

TEST(BuildModel, CnnSaysHowLargeImagesAre) {
  try {
    BuildModel({.name = "cnn"}, {1, 1, 4}, 3);
    ADD_FAILURE() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("got 1x1"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace trireme
