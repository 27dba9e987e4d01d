#include "graph/onnx/onnx_file.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace trireme {
namespace {

// Against files that make much of little: an empty node has two bytes.
constexpr size_t kMostNodes = 100'000, kMostTensors = 100'000, kMostPorts = 1'000;
constexpr size_t kMostNames = 1'000'000;
constexpr size_t kMostIntegers = 1'024;  // of an attribute
constexpr size_t kMostExtents = 16;

// Of operations that we read, these opsets say the same or have rules for both.
constexpr int64_t kOldestOpset = 9, kNewestOpset = 25;

void RefuseMany(size_t count, size_t most, const char* what) {
  if (count > most) throw Error("holds more than {} {}", most, what);
}

OnnxAttribute ReadAttribute(const ProtoField& message, std::string_view& name) {
  OnnxAttribute attribute;
  ProtoReader reader(message);
  for (ProtoField field; reader.Next(field);) {
    switch (field.number) {
      case 1:
        name = field.Bytes();
        break;
      case 2:
        attribute.number = field.Float();
        break;
      case 3:
        attribute.integer = field.Int();
        break;
      case 4:
        attribute.text = field.Bytes();
        break;
      case 5:
        attribute.tensor.emplace(field);
        break;
      case 7:
        field.AddFloats(attribute.numbers, kMostIntegers);
        break;
      case 8:
        field.AddInts(attribute.integers, kMostIntegers);
        break;
      default:
        break;
    }
  }
  return attribute;
}

int64_t ReadExtent(const ProtoField& message) {
  int64_t extent = -1;
  ProtoReader reader(message);
  for (ProtoField field; reader.Next(field);) {
    if (field.number == 1) extent = field.Int();
  }
  return extent > 0 ? extent : -1;
}

void ReadPortShape(const ProtoField& message, OnnxPort& port) {
  ProtoReader reader(message);
  for (ProtoField field; reader.Next(field);) {
    if (field.number != 1) continue;
    port.shape.push_back(ReadExtent(field));
    RefuseMany(port.shape.size(), kMostExtents, "extents of an input");
  }
}

OnnxPort ReadPort(const ProtoField& message) {
  OnnxPort port;
  ProtoReader reader(message);
  for (ProtoField field; reader.Next(field);) {
    if (field.number == 1) port.name = field.Bytes();
    if (field.number != 2) continue;
    ProtoReader type(field);
    for (ProtoField kind; type.Next(kind);) {
      if (kind.number != 1) continue;  // a tensor
      ProtoReader tensor(kind);
      for (ProtoField part; tensor.Next(part);) {
        if (part.number == 1) port.type = part.Int();
        if (part.number == 2) ReadPortShape(part, port);
      }
    }
  }
  return port;
}

}  // namespace

std::string ShownOnnx(std::string_view text) {
  constexpr size_t kLongest = 120;
  std::string shown(text.substr(0, kLongest));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text.size() > kLongest ? shown + "..." : shown;
}

std::string OnnxNode::Label() const {
  if (!name.empty()) return ShownOnnx(name);
  return outputs.empty() ? "without a name" : "the one that makes " + ShownOnnx(outputs[0]);
}

std::string OnnxNode::Operation() const {
  return standard() ? ShownOnnx(op) : ShownOnnx(domain) + "." + ShownOnnx(op);
}

OnnxFile::OnnxFile(std::string bytes) : bytes_(std::move(bytes)) {
  std::optional<ProtoField> graph;
  ProtoReader reader{std::string_view(bytes_)};
  for (ProtoField field; reader.Next(field);) {
    if (field.number == 2) producer_ = field.Bytes();
    if (field.number == 7) {
      if (graph) throw Error("damaged at byte {}: a second graph", field.at);
      graph = field;
    }
    if (field.number != 8) continue;
    std::string_view domain;
    int64_t version = 0;
    ProtoReader opset(field);
    for (ProtoField part; opset.Next(part);) {
      if (part.number == 1) domain = part.Bytes();
      if (part.number == 2) version = part.Int();
    }
    if (domain.empty() || domain == "ai.onnx") opset_ = version;
  }
  if (!graph || opset_ == 0) throw Error("is no ONNX file: it has no graph, or names no opset");
  if (opset_ < kOldestOpset || opset_ > kNewestOpset) {
    throw Error("is of opset {}; those from {} to {} are read, so export it with one of them",
                opset_, kOldestOpset, kNewestOpset);
  }
  ReadGraph(*graph);
}

void OnnxFile::ReadGraph(const ProtoField& message) {
  ProtoReader reader(message);
  for (ProtoField field; reader.Next(field);) {
    switch (field.number) {
      case 1:
        ReadNode(field);
        break;
      case 5:
        tensors_.emplace_back(field);
        RefuseMany(tensors_.size(), kMostTensors, "tensors");
        break;
      case 11:
        inputs_.push_back(ReadPort(field));
        RefuseMany(inputs_.size(), kMostTensors, "inputs");
        break;
      case 12:
        outputs_.push_back(ReadPort(field));
        RefuseMany(outputs_.size(), kMostPorts, "outputs");
        break;
      case 15:
        throw Error("holds a sparse tensor, which is not read");
      default:
        break;
    }
  }
  std::set<std::string_view> given;  // an old file lists its tensors as inputs, too
  for (const OnnxTensor& tensor : tensors_) given.insert(tensor.name());
  std::erase_if(inputs_, [&](const OnnxPort& port) { return given.contains(port.name); });
  RefuseMany(inputs_.size(), kMostPorts, "inputs");
}

void OnnxFile::ReadNode(const ProtoField& message) {
  OnnxNode node;
  ProtoReader reader(message);
  for (ProtoField field; reader.Next(field);) {
    switch (field.number) {
      case 1:
        node.inputs.push_back(field.Bytes());
        break;
      case 2:
        node.outputs.push_back(field.Bytes());
        break;
      case 3:
        node.name = field.Bytes();
        break;
      case 4:
        node.op = field.Bytes();
        break;
      case 5: {
        std::string_view name;
        OnnxAttribute attribute = ReadAttribute(field, name);
        node.attributes.insert_or_assign(name, std::move(attribute));
        ++names_;
        break;
      }
      case 7:
        node.domain = field.Bytes();
        break;
      default:
        break;
    }
    RefuseMany(names_ + node.inputs.size() + node.outputs.size(), kMostNames, "names");
  }
  names_ += node.inputs.size() + node.outputs.size();
  nodes_.push_back(std::move(node));
  RefuseMany(nodes_.size(), kMostNodes, "nodes");
}

}  // namespace trireme
