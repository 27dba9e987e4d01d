#pragma once
#include <string>
#include <vector>

#include "graph/models/onnx_writer_test.h"

namespace trireme {

// torchvision's VisionTransformer as PyTorch's exporters write it: images of 3 x 8 x 8, patches of
// 4 px, one layer of 4 channels and 2 heads, 3 classes.
class OnnxTransformer {
 public:
  using Ints = std::vector<int64_t>;
  using Names = OnnxWriter::Names;

  // By the exporter of TorchScript. With a free number of samples (-1), all shapes are computed.
  static OnnxWriter Legacy(int64_t samples, int64_t opset = 20) {
    OnnxTransformer t(samples, opset);
    return t.Write();
  }

  // By the exporter of torch.export, with a free number of samples.
  static OnnxWriter Dynamo() {
    OnnxTransformer t(-1, 20);
    return t.WriteDynamo();
  }

 private:
  OnnxTransformer(int64_t samples, int64_t opset) : samples_(samples), opset_(opset) {
    w_.Input("x", {3, 8, 8}, 1, samples);
    w_.Counted("class_token", {1, 1, 4}).Counted("encoder.pos_embedding", {1, 5, 4});
    w_.Counted("conv_proj.weight", {4, 3, 4, 4}, 192).Counted("conv_proj.bias", {4});
    w_.Floats("ones", {4}, {1, 1, 1, 1}).Counted("onnx::MatMul_250", {4, 12}, 48);
    w_.Counted("in_proj_bias", {12}).Counted("out_proj.bias", {4});
    w_.Counted("out_proj.weight", {4, 4}, 16);
    w_.Counted("onnx::MatMul_258", {4, 6}, 24).Counted("mlp.0.bias", {6});
    w_.Counted("onnx::MatMul_259", {6, 4}, 24).Counted("mlp.3.bias", {4});
    w_.Counted("heads.head.weight", {3, 4}, 12).Counted("heads.head.bias", {3});
    w_.Output("y");
  }

  std::string Op(const std::string& op, const Names& inputs,
                 const OnnxWriter::Attributes& attributes = {}, const std::string& module = "") {
    const std::string output = "/" + std::to_string(++made_);
    w_.Node(op, inputs, {output}, attributes, module.empty() ? "" : module + "/" + op);
    return output;
  }
  std::string Number(int64_t value) {
    return Op("Constant", {}, {{"value", OnnxWriter::IntegersOf({}, {value})}});
  }
  std::string Row(const Ints& values) {
    return Op("Constant", {},
              {{"value", OnnxWriter::IntegersOf({int64_t(values.size())}, values)}});
  }
  std::string Extent(const std::string& of, int64_t axis) {
    return Op("Gather", {Op("Shape", {of}), Number(axis)}, {{"axis", 0}});
  }
  std::string Integer(const std::string& number) {
    return Op("Cast", {Op("Cast", {number}, {{"to", 7}})}, {{"to", 7}});
  }
  // Of numbers that the file computes where samples are free.
  std::string ShapeOf(const Names& numbers, const Ints& fixed) {
    if (samples_ > 0) return Row(fixed);
    Names rows;
    for (const std::string& number : numbers) rows.push_back(Op("Unsqueeze", {number, Row({0})}));
    return Op("Concat", rows, {{"axis", 0}});
  }
  std::string Moved(const std::string& value, const Ints& order) {
    return Op("Transpose", {value}, {{"perm", order}});
  }
  std::string Norm(const std::string& value) {
    return Op("LayerNormalization", {value, Op("Identity", {"ones"}), "conv_proj.bias"},
              {{"axis", -1}, {"epsilon", 1e-6f}}, "/ln");
  }
  std::string Dense(const std::string& value, const std::string& weight, const std::string& bias,
                    const std::string& module) {
    return Op("Add", {bias, Op("MatMul", {value, weight}, {}, module)});
  }

  std::string Patches() {
    const std::string conv = Op("Conv", {"x", "conv_proj.weight", "conv_proj.bias"},
                                {{"dilations", Ints{1, 1}},
                                 {"group", 1},
                                 {"kernel_shape", Ints{4, 4}},
                                 {"pads", Ints{0, 0, 0, 0}},
                                 {"strides", Ints{4, 4}}});
    const std::string high = Integer(Op("Div", {Extent("x", 2), Number(4)})),
                      wide = Integer(Op("Div", {Extent("x", 3), Number(4)}));
    const Names numbers = {Extent("x", 0), Number(4), Op("Mul", {high, wide})};
    return Moved(Op("Reshape", {conv, ShapeOf(numbers, {samples_, 4, 4})}, {{"allowzero", 0}}),
                 {0, 2, 1});
  }

  std::string WithClassToken(const std::string& patches) {
    const std::string shape =
        Op("Reshape",
           {ShapeOf({Extent(patches, 0), Number(-1), Number(-1)}, {samples_, -1, -1}), Row({-1})},
           {{"allowzero", 0}});
    const std::string ones = Op("ConstantOfShape", {samples_ > 0 ? Row({3}) : Op("Shape", {shape})},
                                {{"value", OnnxWriter::IntegersOf({1}, {1})}});
    const std::string open = Op("Equal", {shape, Op("Mul", {ones, Number(-1)})});
    const std::string tokens = Op("Expand", {"class_token", Op("Where", {open, ones, shape})});
    return Op("Concat", {tokens, patches}, {{"axis", 1}});
  }

  // 3 x tokens x samples x 4: queries, keys and values.
  std::string Parts(const std::string& turned, const std::string& width) {
    const std::string all = Dense(turned, "onnx::MatMul_250", "in_proj_bias", "/attention");
    const std::string shape = Op("Shape", {all}), last = Op("Mod", {Row({2}), Row({3})});
    const Names cut = {
        Op("Slice", {shape, Row({0}), Op("Reshape", {last, Row({1})})}),
        ShapeOf({Number(3), width}, {3, 4}),
        Op("Slice", {shape, Op("Reshape", {Op("Add", {last, Row({1})}), Row({1})}), Row({kEnd})})};
    const std::string apart =
        Op("Reshape", {all, Op("Concat", cut, {{"axis", 0}})}, {{"allowzero", 0}});
    return Op("Squeeze", {Moved(Op("Unsqueeze", {apart, Row({0})}), {3, 1, 2, 0, 4}), Row({3})});
  }

  std::string Attention(const std::string& value) {
    const std::string turned = Moved(value, {1, 0, 2});
    const std::string tokens = Extent(turned, 0), samples = Extent(turned, 1),
                      channels = Extent(turned, 2);
    const std::string each = Integer(Op("Div", {channels, Number(2)}));
    const std::string width =
        Op("Squeeze",
           {Op("Slice", {Op("Shape", {turned}), Row({-1}), Row({kEnd}), Row({0})}), Row({0})});
    const std::string parts = Parts(turned, width);
    Names heads;
    for (const int64_t part : {0, 1, 2}) {
      const std::string one = Op("Gather", {parts, Number(part)}, {{"axis", 0}});
      const std::string both = Op("Mul", {samples, Number(2)});
      const std::string merged = Moved(
          Op("Reshape", {one, ShapeOf({tokens, both, each}, {5, 2 * samples_, 2})}), {1, 0, 2});
      const Names four = {samples, Number(2), tokens, each};
      heads.push_back(Op("Reshape", {merged, ShapeOf(four, {samples_, 2, 5, 2})}));
    }
    const std::string size = Op("Slice", {Op("Shape", {heads[0]}), Row({-1}), Row({kEnd})});
    w_.Floats("one", {1}, {1});
    const std::string scale = Op(
        "Cast", {Op("Div", {"one", Op("Sqrt", {Op("Cast", {size}, {{"to", 1}})})})}, {{"to", 1}});
    const std::string scores =
        Op("MatMul", {Op("Mul", {heads[0], Op("Sqrt", {scale})}),
                      Op("Mul", {Moved(heads[1], {0, 1, 3, 2}), Op("Sqrt", {scale})})});
    const std::string mixed =
        Moved(Op("MatMul", {Op("Softmax", {scores}, {{"axis", -1}}), heads[2]}), {2, 0, 1, 3});
    const std::string rows = Op(
        "Reshape", {mixed, ShapeOf({Op("Mul", {samples, tokens}), channels}, {5 * samples_, 4})});
    const std::string made = Op("Gemm", {rows, "out_proj.weight", "out_proj.bias"},
                                {{"alpha", 1.0f}, {"beta", 1.0f}, {"transB", 1}});
    return Moved(
        Op("Reshape", {made, ShapeOf({tokens, samples, Extent(made, 1)}, {5, samples_, 4})}),
        {1, 0, 2});
  }

  // An operation of its own since opset 20.
  std::string Gelu(const std::string& x) {
    if (opset_ >= 20) return Op("Gelu", {x}, {{"approximate", std::string("none")}});
    w_.Floats("root", {}, {1.41421356f}).Floats("whole", {}, {1}).Floats("half", {}, {0.5f});
    const std::string above = Op("Add", {Op("Erf", {Op("Div", {x, "root"})}), "whole"});
    return Op("Mul", {Op("Mul", {x, above}), "half"});
  }

  OnnxWriter Write() {
    const std::string x = Op("Add", {WithClassToken(Patches()), "encoder.pos_embedding"});
    const std::string y = Op("Add", {Attention(Norm(x)), x});
    const std::string wide = Gelu(Dense(Norm(y), "onnx::MatMul_258", "mlp.0.bias", "/mlp/mlp.0"));
    const std::string end =
        Norm(Op("Add", {y, Dense(wide, "onnx::MatMul_259", "mlp.3.bias", "/mlp/mlp.3")}));
    const std::string first = Op("Gather", {end, Number(0)}, {{"axis", 1}});
    return w_.Node("Gemm", {first, "heads.head.weight", "heads.head.bias"}, {"y"},
                   {{"alpha", 1.0f}, {"beta", 1.0f}, {"transB", 1}});
  }

  std::string DynamoHeads(const std::string& parts, int64_t part) {
    w_.Integer("at" + std::to_string(part), part);
    const std::string one = Op("Gather", {parts, "at" + std::to_string(part)}, {{"axis", 0}});
    return Op("Reshape", {Moved(Op("Reshape", {one, "merged"}, kZeros), {1, 0, 2}), "four"},
              kZeros);
  }

  std::string DynamoAttention(const std::string& value) {
    const std::string turned = Moved(value, {1, 0, 2});
    const std::string all = Op("Add", {Op("MatMul", {turned, "onnx::MatMul_250"}), "in_proj_bias"});
    const std::string apart = Op("Unsqueeze", {Op("Reshape", {all, "parts"}, kZeros), "zero"});
    const std::string parts = Op("Squeeze", {Moved(apart, {3, 1, 2, 0, 4}), "minus2"});
    const std::string q = DynamoHeads(parts, 0), k = DynamoHeads(parts, 1),
                      v = DynamoHeads(parts, 2);
    // Keys are turned as a batch of matrices.
    const std::string shape = Op("Shape", {k}, {{"start", 0}});
    const std::string last = Op("Slice", {shape, "minus1", "end"}),
                      tokens = Op("Slice", {shape, "minus2", "minus1"}),
                      before = Op("Slice", {shape, "begin", "minus2"});
    const std::string matrices = Op(
        "Reshape", {k, Op("Concat", {"minus1", tokens, last}, {{"axis", 0}})}, {{"allowzero", 0}});
    const std::string keys =
        Op("Reshape",
           {Moved(matrices, {0, 2, 1}), Op("Concat", {before, last, tokens}, {{"axis", 0}})},
           {{"allowzero", 0}});
    const std::string scores = Op("MatMul", {Op("Mul", {q, "scale"}), Op("Mul", {keys, "scale"})});
    const std::string mixed =
        Moved(Op("MatMul", {Op("Softmax", {scores}, {{"axis", -1}}), v}), {2, 0, 1, 3});
    const std::string made =
        Op("Gemm", {Op("Reshape", {mixed, "rows"}, kZeros), "out_proj.weight", "out_proj.bias"},
           {{"beta", 1.0f}, {"transB", 1}, {"alpha", 1.0f}, {"transA", 0}});
    return Moved(Op("Reshape", {made, "tokens"}, kZeros), {1, 0, 2});
  }

  OnnxWriter WriteDynamo() {
    w_.Floats("scale", {1}, {0.840896428f}).Integers("patches", {-1, 4, 4}).Integers("one", {1});
    w_.Integers("parts", {5, -1, 3, 4}).Integers("zero", {0}).Integers("merged", {5, -1, 2});
    w_.Integers("four", {-1, 2, 5, 2}).Integers("rows", {-1, 4}).Integers("tokens", {5, -1, 4});
    w_.Integers("minus1", {-1}).Integers("minus2", {-2}).Integer("first", 0);
    w_.Integers("begin", {INT64_MIN}).Integers("end", {INT64_MAX});
    const std::string samples = Op("Shape", {"x"}, {{"end", 1}, {"start", 0}});
    const std::string conv = Op("Conv", {"x", "conv_proj.weight"},
                                {{"group", 1},
                                 {"pads", Ints{0, 0, 0, 0}},
                                 {"auto_pad", std::string("NOTSET")},
                                 {"strides", Ints{4, 4}},
                                 {"dilations", Ints{1, 1}},
                                 {"kernel_shape", Ints{4, 4}}});
    const std::string patches = Moved(Op("Reshape", {conv, "patches"}, kZeros), {0, 2, 1});
    const std::string token =
        Op("Expand", {"class_token", Op("Concat", {samples, "one", "one"}, {{"axis", 0}})});
    const std::string x =
        Op("Add", {Op("Concat", {token, patches}, {{"axis", 1}}), "encoder.pos_embedding"});
    const std::string y = Op("Add", {DynamoAttention(Norm(x)), x});
    const std::string wide =
        Gelu(Op("Add", {Op("MatMul", {Norm(y), "onnx::MatMul_258"}), "mlp.0.bias"}));
    const std::string narrow = Op("Add", {Op("MatMul", {wide, "onnx::MatMul_259"}), "mlp.3.bias"});
    const std::string end = Norm(Op("Add", {y, narrow}));
    const std::string first = Op("Gather", {end, "first"}, {{"axis", 1}});
    return w_.Node("Gemm", {first, "heads.head.weight"}, {"y"},
                   {{"beta", 1.0f}, {"transB", 1}, {"alpha", 1.0f}, {"transA", 0}});
  }

  const OnnxWriter::Attributes kZeros = {{"allowzero", 1}};
  static constexpr int64_t kEnd = INT64_MAX;

  const int64_t samples_;
  const int64_t opset_;
  OnnxWriter w_;
  int made_ = 0;
};

}  // namespace trireme
