#include "graph/models/onnx_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/files.h"
#include "graph/layout.h"
#include "graph/models/onnx_transformer_test.h"
#include "graph/models/onnx_writer_test.h"

namespace trireme {
namespace {

using Ints = std::vector<int64_t>;

class OnnxModelTest : public testing::Test {
 protected:
  std::string Write(const std::string& bytes) {
    OutputFile file(folder_ / "net.onnx");
    file.Write(bytes);
    file.Close();
    return folder_ / "net.onnx";
  }
  OnnxNetwork Read(const OnnxWriter& writer, int64_t opset = 17) {
    return OnnxNetwork(Write(writer.Bytes(opset)));
  }
  std::string TextOf(const OnnxWriter& writer, int64_t opset = 17) {
    return Read(writer, opset).text();
  }
  // What it is refused with; every one of `parts` is in it.
  std::string Refusal(const std::string& bytes, const std::vector<std::string>& parts) {
    try {
      const OnnxNetwork network(Write(bytes));
      ADD_FAILURE() << "read as\n" << network.text();
    } catch (const UsageError& error) {
      const std::string what = error.what();
      for (const std::string& part : parts) {
        EXPECT_NE(what.find(part), what.npos) << part << " is not in:\n" << what;
      }
      EXPECT_NE(what.find("net.onnx"), what.npos) << what;
      return what;
    }
    return "";
  }
  std::vector<float> Values(const OnnxNetwork& network, const std::string& name) {
    const Ints shape = network.Shape(name);
    int64_t size = 1;
    for (const int64_t extent : shape) size *= extent;
    std::vector<float> values(size_t(size), 0.0f);
    network.Tensor(name, shape, values);
    return values;
  }

  const TemporaryDirectory folder_;
};

// As PyTorch writes a small network, its flatten by x.view(x.size(0), -1).
OnnxWriter SmallCnn() {
  OnnxWriter w;
  w.Input("x", {2, 6, 4});
  w.Counted("features.0.weight", {3, 2, 3, 3}, 54).Counted("features.0.bias", {3});
  for (const char* name : {"weight", "bias", "running_mean", "running_var"}) {
    w.Counted(std::string("features.1.") + name, {3});
  }
  w.Counted("fc.weight", {5, 18}, 90).Counted("fc.bias", {5});
  w.Node("Conv", {"x", "features.0.weight", "features.0.bias"}, {"a"},
         {{"kernel_shape", Ints{3, 3}},
          {"pads", Ints{1, 1, 1, 1}},
          {"strides", Ints{1, 1}},
          {"dilations", Ints{1, 1}},
          {"group", 1}});
  w.Node("BatchNormalization",
         {"a", "features.1.weight", "features.1.bias", "features.1.running_mean",
          "features.1.running_var"},
         {"b"}, {{"epsilon", 1e-3f}, {"momentum", 0.9f}});
  w.Node("Relu", {"b"}, {"c"});
  w.Node("MaxPool", {"c"}, {"d"}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  w.Node("Shape", {"d"}, {"s"}).Integers("zero", {0}).Integers("rest", {-1});
  w.Node("Gather", {"s", "zero"}, {"n"}).Node("Concat", {"n", "rest"}, {"t"}, {{"axis", 0}});
  w.Node("Reshape", {"d", "t"}, {"e"});
  w.Node("Dropout", {"e"}, {"f"});
  w.Node("Gemm", {"f", "fc.weight", "fc.bias"}, {"g"}, {{"transB", 1}});
  w.Node("LogSoftmax", {"g"}, {"y"}, {{"axis", -1}});
  return w.Output("y");
}

TEST_F(OnnxModelTest, SaysANetworkAsText) {
  const OnnxNetwork network = Read(SmallCnn());
  EXPECT_EQ(network.text(),
            "features.0: conv2d 3 kernel=3 padding=1\n"
            "features.1: batch_norm 0.001\n"
            "relu\n"
            "max_pool 2\n"
            "flatten\n"
            "dropout 0.5\n"
            "fc: dense classes\n");
  EXPECT_EQ(network.TensorNames().size(), 8u);
  EXPECT_EQ(network.Shape("features.0.weight"), (Ints{3, 2, 3, 3}));
  EXPECT_EQ(network.Shape("fc.weight"), (Ints{5, 18}));
  EXPECT_EQ(Values(network, "fc.bias"), (std::vector<float>{1, 2, 3, 4, 5}));
  EXPECT_EQ(Values(network, "features.1.running_var"), (std::vector<float>{1, 2, 3}));
  const Graph graph = BuildModel({.name = "onnx", .layers = network.text()},
                                 {.height = 6, .width = 4, .channels = 2}, 5);
  for (const ParameterSpec& spec : graph.parameters) {
    EXPECT_EQ(network.Shape(spec.name), FileShape(spec)) << spec.name;
  }
}

TEST_F(OnnxModelTest, TurnsWeightsThatLieOtherwise) {
  OnnxWriter w;
  w.Input("x", {3})
      .Counted("m", {3, 2})
      .Counted("b", {2})
      .Counted("g", {2, 4})
      .Counted("t", {5, 4});
  w.Node("MatMul", {"x", "m"}, {"a"}, {}, "/first/MatMul").Node("Add", {"b", "a"}, {"c"});
  w.Node("Gemm", {"c", "g"}, {"d"}, {}, "/second/Gemm");
  w.Node("Identity", {"t"}, {"i"}).Node("Transpose", {"i"}, {"u"}, {{"perm", Ints{1, 0}}});
  w.Node("MatMul", {"d", "u"}, {"y"}, {}, "/body/body.2/MatMul").Output("y");
  const OnnxNetwork network = Read(w);
  EXPECT_EQ(network.text(),
            "first: dense 2\nsecond: dense 4 bias=no\nbody.2: dense classes bias=no\n");
  EXPECT_EQ(Values(network, "first.weight"), (std::vector<float>{1, 3, 5, 2, 4, 6}));
  EXPECT_EQ(Values(network, "second.weight"), (std::vector<float>{1, 5, 2, 6, 3, 7, 4, 8}));
  EXPECT_EQ(Values(network, "body.2.weight").at(1), 2);
}

// A norm between a flatten and a dense layer has parameters of its own for each value: it, and what
// follows it, change to our order of an image's values. Without one the layout does (FromFile).
TEST_F(OnnxModelTest, PutsColumnsIntoOurOrder) {
  OnnxWriter w;
  w.Input("x", {2, 1, 3}).Counted("d", {1, 6});
  for (const char* name : {"w", "b", "m", "v"}) w.Counted(name, {6});
  w.Node("Flatten", {"x"}, {"a"});
  w.Node("BatchNormalization", {"a", "w", "b", "m", "v"}, {"c"});
  w.Node("Gemm", {"c", "d"}, {"y"}, {{"transB", 1}}).Output("y");
  const OnnxNetwork network = Read(w);
  const std::vector<float> ours = {1, 4, 2, 5, 3, 6};
  EXPECT_EQ(network.text(), "flatten\nbatch_norm: batch_norm\ndense: dense classes bias=no\n");
  EXPECT_EQ(Values(network, "batch_norm.running_var"), ours);
  EXPECT_EQ(Values(network, "dense.weight"), ours);
}

TEST_F(OnnxModelTest, SumsBecomeResiduals) {
  OnnxWriter w;
  w.Input("x", {4});
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    w.Counted(std::string(name) + ".weight", {4, 4});
  }
  const auto dense = [&](const std::string& from, const std::string& name) {
    w.Node("Gemm", {from, name + ".weight"}, {name}, {{"transB", 1}}, name);
  };
  dense("x", "a");
  dense("a", "b");
  dense("b", "c");
  w.Node("Add", {"b", "c"}, {"inner"}).Node("Relu", {"inner"}, {"r"});
  dense("a", "d");
  w.Node("Add", {"r", "d"}, {"outer"});
  dense("outer", "e");
  w.Output("e");
  EXPECT_EQ(TextOf(w),
            "a: dense 4 bias=no\n"
            "residual {\n"
            "  b: dense 4 bias=no\n"
            "  residual {\n"
            "    c: dense 4 bias=no\n"
            "  }\n"
            "  relu\n"
            "} shortcut {\n"
            "  d: dense 4 bias=no\n"
            "}\n"
            "e: dense classes bias=no\n");
  // Ladders are no residuals in each other.
  OnnxWriter ladder = w;
  ladder.Counted("f.weight", {4, 4});
  ladder.Node("Add", {"c", "d"}, {"cross"}).Node("Add", {"cross", "e"}, {"y"}).Output("logits");
  ladder.Node("Identity", {"y"}, {"logits"});
  Refusal(ladder.Bytes(), {"at several places", "node"});
}

TEST_F(OnnxModelTest, ZerosBehindChannelsAreOneLayer) {
  OnnxWriter w;
  w.Input("x", {2, 5, 5}).Counted("w", {3, 4});
  w.Integers("zeros", {0, 0}).Integers("ends", {5, 1LL << 62}).Integers("axes", {2, 3});
  w.Integers("steps", {2, 2}).Integers("pads", {0, 0, 0, 0, 0, 2, 0, 0});
  w.Node("Slice", {"x", "zeros", "ends", "axes", "steps"}, {"a"}).Node("Pad", {"a", "pads"}, {"b"});
  w.Node("ReduceMean", {"b"}, {"c"}, {{"axes", Ints{-1, -2}}, {"keepdims", 0}});
  w.Node("Gemm", {"c", "w"}, {"y"}, {{"transB", 1}}).Output("y");
  const std::string text =
      "pad_channels 4 stride=2\nglobal_average_pool\ndense: dense classes bias=no\n";
  EXPECT_EQ(TextOf(w), text);
}

TEST_F(OnnxModelTest, WhatIsDoneToTheInputIsItsNormalisation) {
  OnnxWriter w;
  w.Input("x", {2, 1, 1}).Floats("m", {1, 2, 1, 1}, {0.5f, 0.25f}).Floats("s", {2, 1, 1}, {2, 4});
  w.Counted("w", {3, 2});
  w.Node("Sub", {"x", "m"}, {"a"}).Node("Div", {"a", "s"}, {"b"}).Node("Flatten", {"b"}, {"c"});
  w.Node("Gemm", {"c", "w"}, {"y"}, {{"transB", 1}}).Output("y");
  const WrittenNetwork written = ReadOnnxModel(Write(w.Bytes()));
  EXPECT_EQ(written.mean, (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(written.deviation, (std::vector<double>{2, 4}));
  EXPECT_EQ(written.weights, "onnx:" + folder_ / "net.onnx");
  EXPECT_EQ(written.layers, "dense: dense classes bias=no\n");
}

TEST_F(OnnxModelTest, ReadsTensorsOfOtherTypes) {
  const double doubles[] = {1.5, -2};
  OnnxWriter w;
  w.Input("x", {1}).Raw("a", {2, 1}, 10, std::string("\x00\x3e\x00\xc0", 4));  // 1.5, -2 in fp16
  w.Raw("b", {2}, 11, std::string(reinterpret_cast<const char*>(doubles), 16));
  ProtoMessage loose;  // float_data, not packed
  loose.Int(1, 1).Int(1, 2).Int(2, 1).Float(4, 1.5f).Float(4, -2).Bytes(8, "c");
  w.Tensor(loose);
  w.Node("Gemm", {"x", "a", "b"}, {"h"}, {{"transB", 1}})
      .Node("Gemm", {"h", "c"}, {"y"}, {{"transB", 1}});
  const OnnxNetwork network = Read(w.Output("y"));
  const std::vector<float> wanted = {1.5f, -2};
  EXPECT_EQ(Values(network, "dense.weight"), wanted);
  EXPECT_EQ(Values(network, "dense.bias"), wanted);
  EXPECT_EQ(Values(network, "dense_2.weight"), wanted);
}

TEST_F(OnnxModelTest, ListsAllThatIsMissingAtOnce) {
  OnnxWriter w;
  w.Input("x", {4, 8, 8})
      .Counted("w", {4, 2, 3, 3})
      .Counted("k", {4, 4, 1, 3})
      .Floats("two", {}, {2});
  w.Node("Conv", {"x", "w"}, {"a"}, {{"group", 2}}, "grouped");
  w.Node("HardSwish", {"a"}, {"b"}, {}, "/act/HardSwish").Node("Relu", {"b"}, {"c"});
  w.Node("HardSwish", {"c"}, {"d"}, {}, "again")
      .Node("Gelu", {"d"}, {"e"}, {}, "", "com.microsoft");
  w.Node("Conv", {"x", "k"}, {"f"}, {{"pads", Ints{0, 1, 0, 2}}}, "lopsided");
  w.Node("MaxPool", {"x"}, {"p"},
         {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"ceil_mode", 1}}, "high");
  w.Node("Add", {"f", "p"}, {"g"}).Node("Mul", {"g", "e"}, {"h"}, {}, "gate");
  w.Node("Concat", {"h", "e"}, {"j"}, {}, "joint").Node("Relu", {"x"}, {"r"});
  // An attention would take the factor.
  w.Node("Mul", {"r", "two"}, {"q"}, {}, "twice").Node("Relu", {"q"}, {"s"}, {}, "behind");
  w.Node("Add", {"s", "j"}, {"y"}).Output("y");
  const std::string what =
      Refusal(w.Bytes(), {"has 9 nodes without a counterpart here:", "\n  Conv, group 2: grouped",
                          "\n  HardSwish: /act/HardSwish, again",
                          "\n  com.microsoft.Gelu: the one that makes e",
                          "\n  Conv, a kernel of 1x3: lopsided", "\n  MaxPool, ceil_mode 1: high",
                          "\n  Relu, reads what twice (Mul) multiplies: behind",
                          // Behind refused ones, too.
                          "\n  Mul, of two values of the network: gate",
                          "\n  Concat, joins values of the network: joint"});
  EXPECT_EQ(std::ranges::count(what, '\n'), 8) << what;
}

TEST_F(OnnxModelTest, RefusesWhatItCannotTrain) {
  const auto dense = [](OnnxWriter w, const char* from) {
    return w.Counted("w", {2, 4})
        .Node("Gemm", {from, "w"}, {"y"}, {{"transB", 1}}, "fc")
        .Output("y");
  };
  Refusal(dense(OnnxWriter().Input("x", {2, -1, 2}), "x").Bytes(), {"axis 2", "no fixed extent"});
  Refusal(dense(OnnxWriter().Input("x", {4}, 7), "x").Bytes(), {"no floating-point numbers"});
  Refusal(dense(OnnxWriter().Input("x", {3}), "x").Bytes(), {"weights 2x4 for 3 values: fc"});
  Refusal(dense(OnnxWriter().Input("x", {1, 2, 2}), "x").Bytes(), {"needs a row", "1x2x2"});
  Refusal(dense(OnnxWriter().Input("x", {4}), "z").Bytes(), {"networks here have one"});
  Refusal(dense(OnnxWriter().Input("x", {4}), "x").Node("Relu", {"x"}, {"y"}).Bytes(),
          {"made twice"});
  Refusal(dense(OnnxWriter().Input("x", {4}), "x").Output("x").Bytes(), {"2 outputs (y, x)"});
  Refusal(OnnxWriter().Input("x", {4}).Node("Relu", {"x"}, {"y"}).Bytes(), {"no output"});
  // Behind a softmax there is no loss.
  Refusal(
      dense(OnnxWriter().Input("x", {4}).Node("Softmax", {"x"}, {"s"}, {}, "soft"), "s").Bytes(),
      {"reads the result of soft (Softmax)"});
  OnnxWriter shared = OnnxWriter().Input("x", {2}).Counted("w", {2, 2});
  shared.Node("MatMul", {"x", "w"}, {"a"}, {}, "one").Node("MatMul", {"a", "w"}, {"y"}, {}, "two");
  Refusal(shared.Output("y").Bytes(), {"has the weights of one", "share weights", "two"});
}

// x (1 + erf(x / sqrt(2)) / 2) is none.
TEST_F(OnnxModelTest, AGeluIsHalfOfTheWholeSum) {
  const auto with = [](const OnnxWriter::Names& order) {
    OnnxWriter w;
    w.Input("x", {4}).Counted("v", {3, 4}).Counted("w", {2, 3});
    w.Floats("root", {}, {0.70710678f}).Floats("half", {}, {0.5f}).Floats("one", {}, {1});
    w.Node("Gemm", {"x", "v"}, {"h"}, {{"transB", 1}}).Node("Mul", {"h", "root"}, {"a"});
    w.Node("Erf", {"a"}, {"0"});
    for (size_t i = 0; i < 2; ++i) {
      w.Node(order[i], {std::to_string(i), order[i] == "Mul" ? "half" : "one"},
             {std::to_string(i + 1)}, {}, "step" + std::to_string(i));
    }
    w.Node("Mul", {"h", "2"}, {"g"}).Node("Gemm", {"g", "w"}, {"y"}, {{"transB", 1}});
    return w.Output("y");
  };
  EXPECT_NE(TextOf(with({"Add", "Mul"})).find("gelu"), std::string::npos);
  Refusal(with({"Mul", "Add"}).Bytes(), {"Add, reads what step0 (Mul) multiplies: step1"});
}

// Layers have the names of their tensors or nodes, and a bias where there is one.
std::string TransformerText(const std::string& conv, const std::string& attention,
                            const std::string& wide, const std::string& narrow,
                            const std::string& head) {
  return conv +
         "class_token: class_token\n"
         "encoder.pos_embedding: position_embedding\n"
         "residual {\n"
         "  ln: layer_norm epsilon=1e-06 tokens=yes\n  " +
         attention +
         ": dense 12 tokens=yes\n"
         "  attention 2\n"
         "  out_proj: dense 4 tokens=yes\n"
         "}\n"
         "residual {\n"
         "  ln_2: layer_norm epsilon=1e-06 tokens=yes\n  " +
         wide +
         ": dense 6 tokens=yes\n"
         "  gelu\n  " +
         narrow +
         ": dense 4 tokens=yes\n"
         "}\n"
         "ln_3: layer_norm epsilon=1e-06 tokens=yes\n"
         "first_token\n" +
         head;
}

TEST_F(OnnxModelTest, ReadsTransformersAsPyTorchWritesThem) {
  const std::string text = TransformerText("conv_proj: conv2d 4 kernel=4 stride=4\n", "attention",
                                           "mlp.0", "mlp.3", "heads.head: dense classes\n");
  for (const int64_t samples : {-1, 1, 2}) {
    for (const int64_t opset : {20, 17}) {
      SCOPED_TRACE(testing::Message() << samples << " samples, opset " << opset);
      const OnnxNetwork network = Read(OnnxTransformer::Legacy(samples, opset), opset);
      EXPECT_EQ(network.text(), text);
      EXPECT_EQ(network.Shape("attention.weight"), (Ints{12, 4}));
      EXPECT_EQ(Values(network, "attention.weight").at(1), 13.0f / 48);
      EXPECT_EQ(Values(network, "out_proj.weight").at(1), 2.0f / 16);
      EXPECT_EQ(Values(network, "mlp.0.bias").back(), 6);
    }
  }
  EXPECT_EQ(TextOf(OnnxTransformer::Dynamo(), 20),
            TransformerText("conv_proj: conv2d 4 kernel=4 stride=4 bias=no\n", "dense", "dense_2",
                            "dense_3", "heads.head: dense classes bias=no\n"));
}

// Tokens of an image's 2x4 pixels, of 3 channels, then `nodes` from "t" to "r", and a dense layer.
TEST_F(OnnxModelTest, RefusesWhatTokensCannotBecome) {
  const auto behind = [](const std::function<void(OnnxWriter&)>& nodes) {
    OnnxWriter w;
    w.Input("x", {2, 2, 4}).Counted("k", {3, 2, 1, 1}).Counted("w", {5, 24});
    w.Integers("rows", {0, 3, -1}).Integers("zero", {0}).Integers("one", {1});
    w.Integers("odd", {0, 8, 3, -5});
    w.Node("Conv", {"x", "k"}, {"c"}).Node("Reshape", {"c", "rows"}, {"i"});
    w.Node("Transpose", {"i"}, {"t"}, {{"perm", Ints{0, 2, 1}}});
    nodes(w);
    return w.Node("Gemm", {"r", "w"}, {"y"}, {{"transB", 1}}).Output("y");
  };
  EXPECT_NE(TextOf(behind([](OnnxWriter& w) { w.Node("Flatten", {"t"}, {"r"}); })).find("flatten"),
            std::string::npos);
  const auto refuses = [&](const std::function<void(OnnxWriter&)>& nodes, const char* why) {
    Refusal(behind(nodes).Bytes(), {why});
  };
  refuses(
      [](OnnxWriter& w) {
        w.Node("Slice", {"t", "zero", "one", "zero"}, {"s"}).Node("Flatten", {"s"}, {"r"});
      },
      "Slice, of the samples");
  refuses([](OnnxWriter& w) { w.Node("Squeeze", {"t"}, {"s"}).Node("Flatten", {"s"}, {"r"}); },
          "Squeeze, without axes");
  refuses(
      [](OnnxWriter& w) {
        w.Node("Reshape", {"t", "odd"}, {"s"}).Node("Flatten", {"s"}, {"r"});
      },
      "Reshape, cuts tokens");
  // The dense layer behind a flatten has its columns in another order than one for tokens.
  refuses(
      [](OnnxWriter& w) {
        w.Node("Flatten", {"t"}, {"f"}).Node("Unsqueeze", {"f", "one"}, {"u"});
        w.Node("Squeeze", {"u", "one"}, {"r"});
      },
      "Unsqueeze, of 24");
  refuses(
      [](OnnxWriter& w) {
        w.Integer("far", INT64_MAX).Node("Gather", {"t", "far"}, {"s"}, {{"axis", 2}});
        w.Node("Flatten", {"s"}, {"r"});
      },
      "Gather, takes 1 from 9223372036854775807");
  // One place by a number leaves no axis; by a row it does, by a table two.
  refuses(
      [](OnnxWriter& w) {
        w.Tensor(OnnxWriter::IntegersOf({1, 1}, {0}, "table"));
        w.Node("Gather", {"t", "table"}, {"s"}, {{"axis", 1}}).Node("Flatten", {"s"}, {"r"});
      },
      "Gather, picks by what may be no single number");
  refuses(
      [](OnnxWriter& w) {
        w.Node("Constant", {}, {"row"}, {{"value_ints", Ints{0}}});
        w.Node("Gather", {"t", "row"}, {"s"}, {{"axis", 1}}).Node("Flatten", {"s"}, {"r"});
      },
      "Gather, picks by what may be no single number");
  // Truncated, they are other values.
  refuses(
      [](OnnxWriter& w) {
        w.Node("Cast", {"t"}, {"s"}, {{"to", 7}}).Node("Flatten", {"s"}, {"r"});
      },
      "Cast, to integers");
  // 8 x 1 x 3 is added to each of 8 samples.
  refuses(
      [](OnnxWriter& w) {
        w.Counted("p", {8, 1, 3}).Node("Add", {"t", "p"}, {"s"}).Node("Flatten", {"s"}, {"r"});
      },
      "Add, adds a constant that is no layer's bias");
  refuses(
      [](OnnxWriter& w) {
        w.Counted("p", {1, 8, 3}).Node("Add", {"t", "p"}, {"s"}, {}, "first");
        w.Node("Add", {"s", "p"}, {"u"}).Node("Flatten", {"u"}, {"r"});
      },
      "Add, has the weights of first");
}

// Of 2x4 pixels: queries, keys and values of 2 heads of 2 channels, and what `nodes` makes of
// "scores", called "shares".
TEST_F(OnnxModelTest, RefusesOtherSharesThanThoseOfKeys) {
  const auto with = [](const std::function<void(OnnxWriter&)>& nodes) {
    OnnxWriter w;
    w.Input("x", {2, 2, 4}).Counted("c", {12, 2, 1, 1}).Counted("w", {5, 32});
    w.Integers("rows", {0, 12, -1}).Integers("cut", {0, 8, 3, 2, 2}).Integers("row", {0, 32});
    w.Floats("scale", {}, {0.70710678f}).Integers("zero", {0});
    w.Node("Conv", {"x", "c"}, {"d"}).Node("Reshape", {"d", "rows"}, {"i"});
    w.Node("Transpose", {"i"}, {"t"}, {{"perm", Ints{0, 2, 1}}});
    w.Node("Reshape", {"t", "cut"}, {"p"});
    w.Node("Transpose", {"p"}, {"h"}, {{"perm", Ints{2, 0, 3, 1, 4}}});
    for (const int part : {0, 1, 2}) {
      const std::string name(1, "qkv"[part]);
      w.Integer("at_" + name, part).Node("Gather", {"h", "at_" + name}, {name}, {{"axis", 0}});
    }
    w.Node("Transpose", {"k"}, {"u"}, {{"perm", Ints{0, 1, 3, 2}}});
    w.Node("MatMul", {"q", "u"}, {"product"}).Node("Mul", {"product", "scale"}, {"scores"});
    nodes(w);
    w.Node("MatMul", {"shares", "v"}, {"m"});
    w.Node("Transpose", {"m"}, {"n"}, {{"perm", Ints{0, 2, 1, 3}}});
    w.Node("Reshape", {"n", "row"}, {"r"}).Node("Gemm", {"r", "w"}, {"y"}, {{"transB", 1}});
    return w.Output("y");
  };
  EXPECT_EQ(
      TextOf(with([](OnnxWriter& w) {
        w.Node("Softmax", {"scores"}, {"shares"}, {{"axis", 3}});
      })),
      "conv2d: conv2d 12 kernel=1 bias=no\nattention 2\nflatten\ndense: dense classes bias=no\n");
  // Of five axes the fourth is that of queries.
  Refusal(with([](OnnxWriter& w) {
            w.Node("Unsqueeze", {"scores", "zero"}, {"five"}, {}, "more");
            w.Node("Softmax", {"five"}, {"s"}, {{"axis", 3}});
            w.Node("Squeeze", {"s", "zero"}, {"shares"});
          }).Bytes(),
          {"\n  Unsqueeze, reads ", ": more"});
  Refusal(with([](OnnxWriter& w) {
            w.Node("Cast", {"scores"}, {"whole"}, {{"to", 7}}, "rounded");
            w.Node("Softmax", {"whole"}, {"shares"}, {{"axis", 3}});
          }).Bytes(),
          {"\n  Cast, to integers: rounded"});
}

// A bias that is added to one name of a value is not in its other ones.
TEST_F(OnnxModelTest, ABiasIsOfALayerThatNobodyReadsWithoutIt) {
  const auto with = [](const std::string& first, const std::string& second) {
    OnnxWriter w;
    w.Input("x", {4}).Counted("v", {3, 4}).Counted("b", {3}).Counted("w", {2, 3});
    w.Node("Gemm", {"x", "v"}, {"h"}, {{"transB", 1}}).Node("Identity", {"h"}, {"i"});
    w.Node("Relu", {first}, {"r"}).Node("Add", {second, "b"}, {"s"}, {}, "shift");
    w.Node("Add", {"r", "s"}, {"a"}).Node("Gemm", {"a", "w"}, {"y"}, {{"transB", 1}});
    return w.Output("y");
  };
  Refusal(with("h", "i").Bytes(), {"Add, adds a constant that is no layer's bias: shift"});
  Refusal(with("i", "h").Bytes(), {"Add, adds a constant that is no layer's bias: shift"});
  Refusal(with("i", "i").Bytes(), {"Add, adds a constant that is no layer's bias: shift"});
  // Renamed twice, read once.
  OnnxWriter w;
  w.Input("x", {4}).Counted("v", {3, 4}).Counted("b", {3}).Counted("w", {2, 3});
  w.Node("Gemm", {"x", "v"}, {"h"}, {{"transB", 1}}).Node("Identity", {"h"}, {"i"});
  w.Node("Identity", {"i"}, {"j"}).Node("Add", {"b", "j"}, {"s"});
  w.Node("Gemm", {"s", "w"}, {"y"}, {{"transB", 1}}).Output("y");
  EXPECT_EQ(TextOf(w), "dense: dense 3\ndense_2: dense classes bias=no\n");
}

// What a dense layer makes of tokens, as an image again: a row is for its columns.
TEST_F(OnnxModelTest, ABiasIsForChannels) {
  const auto with = [](const Ints& shape) {
    OnnxWriter w;
    w.Input("x", {2, 4, 4}).Counted("v", {2, 4}).Counted("b", shape).Counted("w", {5, 64});
    w.Integers("rows", {0, 2, -1}).Integers("image", {0, 4, 4, 4}).Counted("k", {2, 2, 1, 1});
    w.Node("Conv", {"x", "k"}, {"c"}).Node("Reshape", {"c", "rows"}, {"i"});
    w.Node("Transpose", {"i"}, {"t"}, {{"perm", Ints{0, 2, 1}}}).Node("MatMul", {"t", "v"}, {"m"});
    w.Node("Transpose", {"m"}, {"n"}, {{"perm", Ints{0, 2, 1}}});
    w.Node("Reshape", {"n", "image"}, {"p"}).Node("Add", {"p", "b"}, {"s"}, {}, "shift");
    w.Node("Flatten", {"s"}, {"f"}).Node("Gemm", {"f", "w"}, {"y"}, {{"transB", 1}});
    return w.Output("y");
  };
  Refusal(with({4}).Bytes(), {"Add, adds a constant that is no layer's bias: shift"});
  EXPECT_EQ(TextOf(with({4, 1, 1})),
            "conv2d: conv2d 2 kernel=1 bias=no\ndense: dense 4 tokens=yes\nflatten\n"
            "dense_2: dense classes bias=no\n");
}

TEST_F(OnnxModelTest, RefusesSumsOfNoNumbers) {
  OnnxWriter w;
  w.Input("x", {4}).Counted("w", {2, 4}).Integers("none", {}).Integers("one", {1});
  w.Node("Add", {"none", "one"}, {"shape"}, {}, "sum").Node("Reshape", {"x", "shape"}, {"r"});
  w.Node("Gemm", {"r", "w"}, {"y"}, {{"transB", 1}}).Output("y");
  Refusal(w.Bytes(), {"Add, of 0 and 1 numbers: sum"});
}

TEST_F(OnnxModelTest, RefusesFilesThatAreNone) {
  const std::string good = SmallCnn().Bytes();
  Refusal("", {"no ONNX file"});
  Refusal("PK\x03\x04 something else", {"damaged at byte"});
  Refusal(SmallCnn().Bytes(8), {"of opset 8", "9 to"});
  Refusal(SmallCnn().Bytes(99), {"of opset 99", "9 to"});
  EXPECT_THROW(OnnxNetwork(folder_ / "none.onnx"), UsageError);
  EXPECT_THROW(OnnxNetwork(folder_.path()), UsageError);
  ProtoMessage elsewhere;
  elsewhere.Int(1, 1).Int(2, 1).Bytes(8, "w").Int(14, 1).Message(
      13, ProtoMessage().Bytes(1, "location").Bytes(2, "net.onnx.data"));
  Refusal(OnnxWriter().Input("x", {1}).Tensor(elsewhere).Output("x").Bytes(),
          {"another file, net.onnx.data", "external_data=False"});
  // Cut in many places.
  for (size_t size = 0; size < good.size(); size += 11) {
    EXPECT_THROW(OnnxNetwork(Write(good.substr(0, size))), UsageError) << size;
  }
}

// Each of many nodes has some axes more than the one before it, or another copy of a list.
TEST_F(OnnxModelTest, NodesOfAFewBytesTakeLittleMemory) {
  constexpr int kNodes = 3000;
  const auto chain = [&](OnnxWriter w, const std::function<void(OnnxWriter&, int)>& node) {
    for (int i = 0; i < kNodes; ++i) node(w, i);
    return w;
  };
  const auto name = [](int number) { return "v" + std::to_string(number); };
  OnnxWriter axes;
  axes.Input("x", {4}).Counted("w", {3, 4}).Integers("more", Ints(1000, 2)).Output(name(kNodes));
  axes.Node("Gemm", {"x", "w"}, {name(0)}, {{"transB", 1}});
  Refusal(chain(axes,
                [&](OnnxWriter& w, int i) {
                  w.Node("Unsqueeze", {name(i), "more"}, {name(i + 1)}, {}, name(i));
                })
              .Bytes(),
          {"Unsqueeze, makes 1002 axes: v0"});
  OnnxWriter lists;
  lists.Input("x", {4}).Node("Reshape", {"x", name(kNodes)}, {"y"}).Output("y");
  lists.Node("Constant", {}, {name(0)}, {{"value_ints", Ints(1000, 4)}});
  Refusal(chain(lists, [&](OnnxWriter& w, int i) { w.Node("Identity", {name(i)}, {name(i + 1)}); })
              .Bytes(),
          {"has nodes that make more than 2,097,152 numbers"});
  OnnxWriter scales;
  scales.Input("x", {1 << 16}).Floats("half", {}, {0.5f}).Output(name(kNodes));
  scales.Node("Identity", {"x"}, {name(0)});
  Refusal(chain(scales,
                [&](OnnxWriter& w, int i) {
                  w.Node("Mul", {name(i), "half"}, {name(i + 1)});
                })
              .Bytes(),
          {"has nodes that make more than 2,097,152 numbers"});
}

// A tensor of 2^60 values in a few bytes, a shape that overflows, a million empty nodes.
TEST_F(OnnxModelTest, PromisesTakeNoMemory) {
  OnnxWriter w;
  w.Input("x", {4}).Raw("w", {1LL << 30, 4}, 1, "12345678");
  w.Node("Gemm", {"x", "w"}, {"y"}, {{"transB", 1}}).Output("y");
  Refusal(w.Bytes(), {"holds 8 bytes for 4294967296 values"});
  OnnxWriter v;
  v.Input("x", {4}).Raw("w", {1LL << 40, 1LL << 40}, 1, "").Output("x");
  Refusal(v.Bytes(), {"no possible shape"});
  OnnxWriter many;
  for (int i = 0; i < 100'001; ++i) many.Node("", {}, {});
  Refusal(many.Bytes(), {"more than 100000 nodes"});
  ProtoMessage loose;
  loose.Int(1, 1 << 30).Int(1, 4).Int(2, 1).Float(4, 1.5f).Bytes(8, "w");
  Refusal(OnnxWriter().Input("x", {4}).Tensor(loose).Output("x").Bytes(), {"at most 1 values"});
  Refusal(OnnxWriter()
              .Input("x", {1 << 27})
              .Floats("half", {}, {0.5f})
              .Node("Mul", {"x", "half"}, {"y"})
              .Output("y")
              .Bytes(),
          {"Mul, channels 134217728"});
  const OnnxNetwork network = Read(SmallCnn());
  std::vector<float> values(5);
  EXPECT_THROW(network.Tensor("fc.bias", Ints{5, 1}, values), Error);
  EXPECT_THROW(network.Tensor("other.bias", Ints{5}, values), Error);
  EXPECT_THROW(network.Int("fc.bias"), Error);
}

}  // namespace
}  // namespace trireme
