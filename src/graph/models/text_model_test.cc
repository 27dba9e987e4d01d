#include "graph/models/text_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "graph/models/example_networks_test.h"
#include "graph/models/layer_kinds.h"
#include "graph/op.h"
#include "graph/program.h"

namespace trireme {
namespace {

Graph Build(const std::string& layers, Shape input = {16, 16, 3}, int classes = 10) {
  return BuildModel({.name = "text", .layers = layers}, input, classes);
}

// What is wrong with a text.
std::string Refusal(const std::string& layers, Shape input = {16, 16, 3}) {
  try {
    Build(layers, input);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

void ExpectSameSpecs(const std::vector<ParameterSpec>& a, const std::vector<ParameterSpec>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name);
    EXPECT_EQ(a[i].shape, b[i].shape) << a[i].name;
    EXPECT_EQ(a[i].form, b[i].form) << a[i].name;
    EXPECT_EQ(a[i].initial, b[i].initial) << a[i].name;
    EXPECT_EQ(a[i].decays, b[i].decays) << a[i].name;
    EXPECT_EQ(a[i].fan_in, b[i].fan_in) << a[i].name;
    EXPECT_EQ(a[i].flattened, b[i].flattened) << a[i].name;
  }
}

void ExpectSameGraph(const Graph& a, const Graph& b) {
  EXPECT_EQ(a.values, b.values);
  ExpectSameSpecs(a.parameters, b.parameters);
  ExpectSameSpecs(a.statistics, b.statistics);
  ASSERT_EQ(a.nodes.size(), b.nodes.size());
  for (size_t i = 0; i < a.nodes.size(); ++i) {
    const Node &x = a.nodes[i], &y = b.nodes[i];
    EXPECT_EQ(x.op, y.op) << x.name;
    EXPECT_EQ(x.name, y.name);
    EXPECT_EQ(x.inputs, y.inputs) << x.name;
    EXPECT_EQ(x.outputs, y.outputs) << x.name;
    EXPECT_EQ(x.parameters, y.parameters) << x.name;
    EXPECT_EQ(x.statistics, y.statistics) << x.name;
    const Attributes &p = x.attributes, &q = y.attributes;
    EXPECT_EQ(p.channels, q.channels) << x.name;
    EXPECT_EQ(p.kernel, q.kernel) << x.name;
    EXPECT_EQ(p.stride, q.stride) << x.name;
    EXPECT_EQ(p.padding, q.padding) << x.name;
    EXPECT_EQ(p.bias, q.bias) << x.name;
    EXPECT_EQ(p.affine, q.affine) << x.name;
    EXPECT_EQ(p.tokens, q.tokens) << x.name;
    EXPECT_EQ(p.heads, q.heads) << x.name;
    EXPECT_EQ(p.epsilon, q.epsilon) << x.name;
    EXPECT_EQ(p.rate, q.rate) << x.name;
  }
}

TEST(TextModel, OfCnnAndResNet18HasTheirGraphs) {
  for (const Shape input : {Shape{28, 28, 1}, Shape{32, 32, 3}}) {
    ExpectSameGraph(Build(kCnnAsText, input), BuildModel({.name = "cnn"}, input, 10));
    ExpectSameGraph(Build(kResNet18AsText, input), BuildModel({.name = "resnet18"}, input, 10));
  }
}

TEST(TextModel, OfVitTiHasItsGraph) {
  const Shape input{32, 32, 3};
  ExpectSameGraph(Build(kVitTiAsText, input), BuildModel({.name = "vit_ti"}, input, 10));
}

TEST(TextModel, NumbersLayersWithoutANameAsASequentialDoes) {
  const Graph graph = Build(R"(
    flatten                          # 0
    repeat 2 { dense 30; relu }      # 1 to 4
    head: { dense 20; relu; dense classes }
  )");
  std::vector<std::string> names;
  for (const ParameterSpec& spec : graph.parameters) names.push_back(spec.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"1.weight", "1.bias", "3.weight", "3.bias", "head.0.weight",
                                      "head.0.bias", "head.2.weight", "head.2.bias"}));
}

TEST(TextModel, ReadsValuesByPositionAndByName) {
  const Graph graph = Build(R"(
    define narrow width drop=0.5 bias=yes { a: conv2d width/4 1 bias=bias; b: conv2d 4*width/2 1; dropout drop }
    conv2d kernel=5 channels=8 stride=2 padding=2
    narrow 12 bias=no
    max_pool 2
    average_pool 3 stride=1 padding=1
    layer_norm affine=no epsilon=1e-3
    global_average_pool
    dense classes bias=false
  )");
  const auto& nodes = graph.nodes;
  EXPECT_EQ(nodes[0].attributes.kernel, 5);
  EXPECT_EQ(nodes[1].attributes.channels, 3);
  EXPECT_FALSE(nodes[1].attributes.bias);
  EXPECT_EQ(nodes[2].attributes.channels, 24);
  EXPECT_EQ(nodes[3].attributes.rate, 0.5f);
  EXPECT_EQ(nodes[4].attributes.stride, 2);  // a pool's stride is its kernel
  EXPECT_EQ(nodes[5].attributes.stride, 1);
  EXPECT_EQ(nodes[6].attributes.epsilon, 1e-3f);
  EXPECT_FALSE(nodes[8].attributes.bias);
}

TEST(TextModel, TakesAShortcutsLayersAlwaysOrWhereShapesDiffer) {
  const auto layers = [](const std::string& word, int width) {
    return Build("residual { conv2d " + std::to_string(width) + " 1 } " + word +
                 " { conv2d 3 1 }; global_average_pool; dense classes")
        .nodes.size();
  };
  EXPECT_EQ(layers("projection", 3), 5u);  // the input itself is added
  EXPECT_EQ(layers("shortcut", 3), 6u);
  EXPECT_NE(Refusal("residual { conv2d 4 1 } projection { conv2d 3 1 }").find("16x16x3"),
            std::string::npos);
}

TEST(TextModel, SaysWhereAndWhatIsWrong) {
  const auto expect = [](const std::string& layers, const std::vector<std::string>& words) {
    const std::string refusal = Refusal(layers);
    for (const std::string& word : words) {
      EXPECT_NE(refusal.find(word), std::string::npos) << layers << "\n" << refusal;
    }
  };
  expect("relu\nx: cov2d 3 1", {"model.layers:2:4:", "cov2d", "did you mean conv2d?"});
  expect("conv2d 3 kernl=1", {":1:10:", "no kernl", "did you mean kernel?"});
  expect("conv2d 3", {":1:1:", "needs kernel"});
  expect("conv2d 3 1 1 1 yes 7", {":1:20:", "too many"});
  expect("conv2d 3 kernel=1 kernel=2", {":1:19:", "a second kernel"});
  expect("conv2d kernel=1 3", {":1:17:", "follows kernel="});
  expect("conv2d 0 1", {":1:8:", "from 1 to 1048576", "got 0"});
  expect("conv2d 2.5 1", {"whole number", "2.5"});
  expect("conv2d clases 1", {"did you mean classes?"});
  expect("conv2d 3 1 bias=maybe", {"yes or no"});
  expect("conv2d 7/2 1", {"3.5"});
  expect("conv2d 7/0 1", {"division by zero"});
  expect("dropout 1", {"rate", "from 0 to 0.99"});
  expect("a: {\n  relu\n", {":1:4:", "never closed"});
  expect("relu }", {":1:6:", "closes nothing"});
  expect("relu\n  ?", {":2:3:", "'?'"});
  expect("repeat 2", {"expected {"});
  expect("repeat { relu }", {"expected a value"});
  expect("name:\nrelu", {":1:6:", "expected a layer", "end of the line"});
  expect("a..b: relu", {"no name"});
  expect("define conv2d { relu }\nconv2d", {":1:8:", "already"});
  expect("define a { b }\ndefine b { relu }\na", {":1:12:", "comes later"});
  expect("define a { a }\na", {"comes later"});
  expect("define a w { relu }\na", {":2:1:", "a needs w"});
  expect("{ define a { relu } }", {"outside of all brackets"});
  expect("shortcut { relu }", {"no place here"});
  expect("residual { }", {"no layer"});
  expect("residual { repeat 0 { relu } } shortcut { }", {"no layer"});
  expect("", {"needs model.layers"});
  expect("# nothing", {"has no layer"});
  expect("flatten", {"\"0\" (flatten)", "makes 768", "want 10", "dense classes"});
  expect("a: dense classes", {"\"a\" (dense)", "the input", "16x16x3", "flatten"});
  expect("p: max_pool 16\nq: max_pool 2",
         {":2:4:", "\"q\" (max_pool)", "\"p\" (max_pool)", "makes 3", "2x2"});
  expect("c: conv2d 8 3\nresidual { d: conv2d 8 3 }",
         {"\"d\" (conv2d)", "12x12x8", "\"c\" (conv2d)", "14x14x8", "projection"});
  expect("repeat 2 { a: conv2d 8 1 }", {":1:15:", "a second layer", "\"a\""});
  EXPECT_NE(Refusal("relu", {1, 1, 10}).find("nothing to train"), std::string::npos);
}

TEST(TextModel, RefusesOptionsThatItsLayersSay) {
  const std::string layers = "flatten; dense classes";
  const auto refused = [&](ModelOptions options) {
    options.name = "text";
    options.layers = layers;
    EXPECT_THROW(BuildModel(options, {4, 4, 1}, 3), UsageError);
  };
  refused({.activation = "tanh"});
  refused({.norm = "batch"});
  refused({.dropout = 0.5});
  refused({.stem = "3x3"});
  EXPECT_THROW(BuildModel({.name = "text"}, {4, 4, 1}, 3), UsageError);
}

TEST(TextModel, RefusesSizesThatNobodyMeans) {
  EXPECT_NE(Refusal("repeat 1000000000 { relu }").find("repeat must be"), std::string::npos);
  EXPECT_NE(Refusal("repeat 10000 { repeat 10000 { } }").find("at most"), std::string::npos);
  EXPECT_NE(Refusal("repeat 10000 { repeat 2 { relu } }").find("10000 layers"), std::string::npos);
  std::string doubles = "define d0 { relu; relu }\n";
  std::string chain = "define d0 { relu }\n";
  for (int i = 1; i < 200; ++i) {
    doubles += fmt::format("define d{0} {{ d{1}; d{1} }}\n", i, i - 1);
    chain += fmt::format("define d{0} {{ d{1} }}\n", i, i - 1);
  }
  EXPECT_NE(Refusal(doubles + "d40").find("10000 layers"), std::string::npos);
  EXPECT_NE(Refusal(chain + "d199").find("in each other"), std::string::npos);
  EXPECT_NE(Refusal(std::string(1000, '{')).find("in each other"), std::string::npos);
  EXPECT_NE(Refusal(std::string(100000, '\n')).find("bytes"), std::string::npos);
  EXPECT_NE(Refusal("flatten; repeat 3 { dense 1000000 }").find("parameters"), std::string::npos);
  EXPECT_NE(Refusal("conv2d 1048576 1; relu", {1000, 1000, 3}).find("values"), std::string::npos);
}

TEST(TextModel, ShowsTheShapesOfItsLayers) {
  const std::string text = DescribeLayers(Build(kResNet18AsText, {32, 32, 3}));
  for (const char* word : {"32x32x3", "layer2.0.downsample.0", "16x16x128", "fc"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word;
  }
}

std::string NetworkOfTheDocument() {
  const std::string page = ReadFile(TRIREME_DOCS "/networks.md");
  const std::string begin = "```network\n";
  const size_t at = page.find(begin) + begin.size();
  return page.substr(at, page.find("```", at) - at);
}

TEST(TextModel, OfTheDocumentIsResNet20) {
  const std::string text = NetworkOfTheDocument();
  EXPECT_LT(std::ranges::count(text, '\n'), 20);
  const Graph graph = Build(text, {32, 32, 3});
  // 0.27 M parameters and 41 M products, as He et al. have them.
  EXPECT_EQ(Measure(graph).parameters, 269722);
  EXPECT_NEAR(Measure(graph).multiply_adds, 40.55e6, 0.01e6);
  const auto weighted = [](const Node& node) {
    return std::string_view(node.op->name) == "conv2d" ||
           std::string_view(node.op->name) == "dense";
  };
  EXPECT_EQ(std::ranges::count_if(graph.nodes, weighted), 20);
  EXPECT_EQ(std::ranges::count(graph.nodes, &FindOp("pad_channels"), &Node::op), 2);
}

TEST(TextModel, EveryLayerIsInTheDocument) {
  const std::string page = ReadFile(TRIREME_DOCS "/networks.md");
  for (const LayerKind& kind : LayerKinds()) {
    EXPECT_NE(page.find("`" + kind.op + "`"), std::string::npos) << kind.op;
  }
}

TEST(LayerKinds, AreOperationsOfOneInput) {
  for (const LayerKind& kind : LayerKinds()) {
    const OpDef& op = FindOp(kind.op);
    EXPECT_TRUE(op.infer && op.gradient && op.inputs.size() == 1) << kind.op;
  }
}

// Pieces of good texts in any order, and good texts with bytes changed: refused or built, no more.
TEST(TextModel, OutlivesGarbage) {
  const std::vector<std::string> pieces = {
      "conv2d",   "dense",      "relu",     "flatten", "global_average_pool",
      "max_pool", "{",          "}",        ":",       "=",
      "*",        "/",          "\n",       ";",       "repeat",
      "residual", "projection", "shortcut", "define",  "a",
      "b",        "classes",    "3",        "1",       "0.5",
      "kernel=1", "channels",   "1e999",    "-1",      "nan",
      "..",       "#",          "a:"};
  const Random random(27);
  int built = 0;
  for (uint64_t i = 0; i < 20000; ++i) {
    std::string text;
    const uint64_t length = random.Bits(i * 100) % 30;
    for (uint64_t j = 0; j < length; ++j) {
      text += pieces[random.Bits(i * 100 + j + 1) % pieces.size()] + " ";
    }
    if (Refusal(text + "\n global_average_pool; dense classes") == "accepted") ++built;
  }
  EXPECT_GT(built, 0);
  for (uint64_t i = 0; i < 2000; ++i) {
    std::string text = kResNet18AsText;
    for (uint64_t j = 0; j < 1 + i % 4; ++j) {
      const uint64_t bits = random.Bits(uint64_t{1} << 40 | (i * 8 + j));
      text[bits % text.size()] = char(bits >> 32);
    }
    Refusal(text);
  }
}

}  // namespace
}  // namespace trireme
