#include "model/onnx/onnx_graph.h"

#include <fmt/core.h>

#include <bit>
#include <cstring>

#include "base/version.h"

namespace trireme {
namespace {

static_assert(std::endian::native == std::endian::little, "raw data of tensors is little-endian");

constexpr int kIrVersion = 8, kOpset = 17, kTablesOpset = 3;
constexpr char kTablesDomain[] = "ai.onnx.ml";

ProtoMessage Attribute(std::string_view name, int type) {
  ProtoMessage attribute;
  attribute.Bytes(1, name).Int(20, type);
  return attribute;
}

ProtoMessage ValueInfo(const std::string& name, OnnxType type, const std::vector<int64_t>& shape) {
  ProtoMessage dims;
  dims.Message(1, ProtoMessage().Bytes(2, "samples"));
  for (const int64_t extent : shape) dims.Message(1, ProtoMessage().Int(1, extent));
  ProtoMessage tensor;
  tensor.Int(1, int(type)).Message(2, dims);
  return ProtoMessage().Bytes(1, name).Message(2, ProtoMessage().Message(1, tensor));
}

ProtoMessage Tensor(const std::string& name, OnnxType type, const std::vector<int64_t>& shape,
                    std::string_view raw) {
  ProtoMessage tensor;
  for (const int64_t extent : shape) tensor.Int(1, extent);
  return tensor.Int(2, int(type)).Bytes(8, name).Bytes(9, raw);
}

template <class T>
std::string_view Raw(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

}  // namespace

OnnxAttributes& OnnxAttributes::Int(std::string_view name, int64_t value) {
  all_.push_back(Attribute(name, 2).Int(3, value));
  return *this;
}

OnnxAttributes& OnnxAttributes::Float(std::string_view name, float value) {
  all_.push_back(Attribute(name, 1).Float(2, value));
  return *this;
}

OnnxAttributes& OnnxAttributes::Ints(std::string_view name, const std::vector<int64_t>& values) {
  all_.push_back(Attribute(name, 7));
  for (const int64_t value : values) all_.back().Int(8, value);
  return *this;
}

OnnxAttributes& OnnxAttributes::Texts(std::string_view name,
                                      const std::vector<std::string>& values) {
  all_.push_back(Attribute(name, 8));
  for (const std::string& value : values) all_.back().Bytes(9, value);
  return *this;
}

namespace {

std::string Unique(const std::string& name, std::set<std::string>& taken) {
  std::string unique = name;
  while (!taken.insert(unique).second) unique += "_";
  return unique;
}

}  // namespace

std::string OnnxGraph::Input(const std::string& name, OnnxType type,
                             const std::vector<int64_t>& shape) {
  const std::string unique = Unique(name, names_);
  inputs_.Message(11, ValueInfo(unique, type, shape));
  return unique;
}

void OnnxGraph::Output(const std::string& name, const std::string& value,
                       const std::vector<int64_t>& shape) {
  const std::string unique = Unique(name, names_);
  Append("Identity", {value}, {unique}, {}, "", "");
  outputs_.Message(12, ValueInfo(unique, OnnxType::kFloat, shape));
}

std::string OnnxGraph::Floats(const std::string& name, const std::vector<int64_t>& shape,
                              std::span<const float> values) {
  const std::string unique = Unique(name, names_);
  tensors_.Message(5, Tensor(unique, OnnxType::kFloat, shape, Raw(values)));
  return unique;
}

std::string OnnxGraph::Integers(const std::vector<int64_t>& values) {
  const std::string name = Unique(fmt::format("/numbers.{}", values_++), names_);
  tensors_.Message(5, Tensor(name, OnnxType::kInt64, {int64_t(values.size())},
                             Raw(std::span<const int64_t>(values))));
  return name;
}

std::string OnnxGraph::Append(std::string_view op, const std::vector<std::string>& inputs,
                              const std::vector<std::string>& outputs,
                              const OnnxAttributes& attributes, std::string_view layer,
                              std::string_view domain) {
  ProtoMessage node;
  for (const std::string& input : inputs) node.Bytes(1, input);
  for (const std::string& output : outputs) node.Bytes(2, output);
  if (!layer.empty()) node.Bytes(3, Unique(std::string(layer), layers_));
  node.Bytes(4, op);
  for (const ProtoMessage& attribute : attributes.all()) node.Message(5, attribute);
  if (!domain.empty()) node.Bytes(7, domain);
  nodes_.Message(1, node);
  return outputs[0];
}

std::string OnnxGraph::Add(std::string_view op, const std::vector<std::string>& inputs,
                           const OnnxAttributes& attributes, std::string_view layer) {
  return Append(op, inputs, {Unique(fmt::format("/{}", values_++), names_)}, attributes, layer, "");
}

std::string OnnxGraph::AddOfTables(std::string_view op, const std::vector<std::string>& inputs,
                                   const OnnxAttributes& attributes) {
  tables_ = true;
  return Append(op, inputs, {Unique(fmt::format("/{}", values_++), names_)}, attributes, "",
                kTablesDomain);
}

std::string OnnxGraph::Bytes(const std::string& name,
                             const std::vector<std::pair<std::string, std::string>>& facts) const {
  std::string graph = nodes_.bytes();
  graph += ProtoMessage().Bytes(2, name).bytes();
  for (const ProtoMessage* part : {&tensors_, &inputs_, &outputs_}) graph += part->bytes();
  ProtoMessage model;
  model.Int(1, kIrVersion).Bytes(2, "trireme").Bytes(3, Version()).Bytes(7, graph);
  model.Message(8, ProtoMessage().Bytes(1, "").Int(2, kOpset));
  if (tables_) model.Message(8, ProtoMessage().Bytes(1, kTablesDomain).Int(2, kTablesOpset));
  for (const auto& [key, text] : facts) {
    model.Message(14, ProtoMessage().Bytes(1, key).Bytes(2, text));
  }
  return model.bytes();
}

}  // namespace trireme
