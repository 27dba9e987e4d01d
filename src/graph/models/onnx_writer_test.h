#pragma once
#include <cstring>
#include <string>
#include <variant>
#include <vector>

#include "base/protobuf.h"

namespace trireme {

// ONNX files for tests, node by node, also wrong ones.
class OnnxWriter {
 public:
  using Value = std::variant<int64_t, float, std::vector<int64_t>, std::string, ProtoMessage>;
  using Attributes = std::vector<std::pair<std::string, Value>>;
  using Names = std::vector<std::string>;

  // A free number of samples, or this one, then these extents; -1 is free, too.
  OnnxWriter& Input(const std::string& name, const std::vector<int64_t>& extents, int type = 1,
                    int64_t samples = -1) {
    ports_.Message(11, Port(name, extents, type, samples));
    return *this;
  }
  OnnxWriter& Output(const std::string& name) {
    ports_.Message(12, Port(name, {}, 1));
    return *this;
  }
  OnnxWriter& Floats(const std::string& name, const std::vector<int64_t>& shape,
                     const std::vector<float>& values) {
    const std::string raw(reinterpret_cast<const char*>(values.data()), 4 * values.size());
    return Raw(name, shape, 1, raw);
  }
  // 1, 2, 3, ... divided by `divisor`.
  OnnxWriter& Counted(const std::string& name, const std::vector<int64_t>& shape,
                      float divisor = 1) {
    int64_t size = 1;
    for (const int64_t extent : shape) size *= extent;
    std::vector<float> values;
    for (int64_t i = 0; i < size; ++i) values.push_back(float(i + 1) / divisor);
    return Floats(name, shape, values);
  }
  OnnxWriter& Integers(const std::string& name, const std::vector<int64_t>& values) {
    return Tensor(IntegersOf({int64_t(values.size())}, values, name));
  }
  OnnxWriter& Integer(const std::string& name, int64_t value) {
    return Tensor(IntegersOf({}, {value}, name));
  }
  OnnxWriter& Raw(const std::string& name, const std::vector<int64_t>& shape, int type,
                  const std::string& raw) {
    return Tensor(TensorOf(name, shape, type, raw));
  }
  // Of an attribute, too.
  static ProtoMessage TensorOf(const std::string& name, const std::vector<int64_t>& shape, int type,
                               const std::string& raw) {
    ProtoMessage tensor;
    for (const int64_t extent : shape) tensor.Int(1, extent);
    return tensor.Int(2, type).Bytes(8, name).Bytes(9, raw);
  }
  static ProtoMessage IntegersOf(const std::vector<int64_t>& shape,
                                 const std::vector<int64_t>& values, const std::string& name = "") {
    const std::string raw(reinterpret_cast<const char*>(values.data()), 8 * values.size());
    return TensorOf(name, shape, 7, raw);
  }
  OnnxWriter& Tensor(const ProtoMessage& tensor) {
    tensors_.Message(5, tensor);
    return *this;
  }
  // The first output is `makes`, or `makes` of several.
  OnnxWriter& Node(const std::string& op, const Names& inputs, const Names& outputs,
                   const Attributes& attributes = {}, const std::string& name = "",
                   const std::string& domain = "") {
    ProtoMessage node;
    for (const std::string& input : inputs) node.Bytes(1, input);
    for (const std::string& output : outputs) node.Bytes(2, output);
    if (!name.empty()) node.Bytes(3, name);
    node.Bytes(4, op);
    for (const auto& [key, value] : attributes) node.Message(5, Attribute(key, value));
    if (!domain.empty()) node.Bytes(7, domain);
    nodes_.Message(1, node);
    return *this;
  }

  std::string Bytes(int64_t opset = 17, const std::string& producer = "pytorch") const {
    ProtoMessage model;
    model.Int(1, 8).Bytes(2, producer);
    model.Bytes(7, nodes_.bytes() + tensors_.bytes() + ports_.bytes());
    return model.Message(8, ProtoMessage().Bytes(1, "").Int(2, opset)).bytes();
  }

 private:
  static ProtoMessage Attribute(const std::string& key, const Value& value) {
    ProtoMessage attribute;
    attribute.Bytes(1, key);
    if (const auto* integer = std::get_if<int64_t>(&value)) attribute.Int(3, *integer);
    if (const auto* number = std::get_if<float>(&value)) attribute.Float(2, *number);
    if (const auto* text = std::get_if<std::string>(&value)) attribute.Bytes(4, *text);
    if (const auto* integers = std::get_if<std::vector<int64_t>>(&value)) {
      for (const int64_t integer : *integers) attribute.Int(8, integer);
    }
    if (const auto* tensor = std::get_if<ProtoMessage>(&value)) attribute.Message(5, *tensor);
    return attribute;
  }

  static ProtoMessage Port(const std::string& name, const std::vector<int64_t>& extents, int type,
                           int64_t samples = -1) {
    ProtoMessage shape;
    shape.Message(1, samples < 0 ? ProtoMessage().Bytes(2, "n") : ProtoMessage().Int(1, samples));
    for (const int64_t extent : extents) {
      shape.Message(1, extent < 0 ? ProtoMessage().Bytes(2, "x") : ProtoMessage().Int(1, extent));
    }
    const ProtoMessage tensor = ProtoMessage().Int(1, type).Message(2, shape);
    return ProtoMessage().Bytes(1, name).Message(2, ProtoMessage().Message(1, tensor));
  }

  ProtoMessage nodes_, tensors_, ports_;
};

}  // namespace trireme
