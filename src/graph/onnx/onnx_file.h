#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/protobuf.h"

namespace trireme {

// What an ONNX file says, not yet what it means. The field numbers and values are those of
// onnx.proto3. Files are untrusted: whatever is damaged is an Error, and memory is taken in
// proportion to the file. Texts and values are parts of its bytes.

// Weights or other constants; the values stay in the file until somebody reads them.
class OnnxTensor {
 public:
  explicit OnnxTensor(const ProtoField& message);

  std::string_view name() const { return name_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  size_t size() const { return size_; }  // the product of shape
  bool holds_integers() const;
  bool holds_floats() const;

  std::vector<float> Floats() const;
  // Throws where there are more than `most`.
  std::vector<int64_t> Integers(size_t most) const;

 private:
  std::string_view Raw(size_t width) const;
  void CheckLength() const;

  std::string_view name_, raw_;
  std::vector<int64_t> shape_;
  size_t size_ = 1;
  int64_t type_ = 0;
  std::vector<ProtoField> values_;  // where they are not raw
};

struct OnnxAttribute {
  std::string_view text;
  std::optional<int64_t> integer;
  std::optional<float> number;
  std::vector<int64_t> integers;
  std::vector<float> numbers;
  std::optional<OnnxTensor> tensor;
};

struct OnnxNode {
  std::string_view name, op, domain;
  std::vector<std::string_view> inputs, outputs;  // empty: this one is left out
  std::map<std::string_view, OnnxAttribute> attributes;

  bool standard() const { return domain.empty() || domain == "ai.onnx"; }
  std::string Label() const;      // for people
  std::string Operation() const;  // with the domain of one that is not ONNX's own
};

struct OnnxPort {
  std::string_view name;
  int64_t type = 0;
  std::vector<int64_t> shape;  // -1: free
};

class OnnxFile {
 public:
  // Errors do not name the file.
  explicit OnnxFile(std::string bytes);
  OnnxFile(const OnnxFile&) = delete;
  OnnxFile& operator=(const OnnxFile&) = delete;

  int64_t opset() const { return opset_; }
  std::string_view producer() const { return producer_; }
  const std::vector<OnnxNode>& nodes() const { return nodes_; }
  const std::vector<OnnxTensor>& tensors() const { return tensors_; }
  const std::vector<OnnxPort>& inputs() const { return inputs_; }  // not those with a tensor
  const std::vector<OnnxPort>& outputs() const { return outputs_; }

 private:
  void ReadGraph(const ProtoField& message);
  void ReadNode(const ProtoField& message);

  const std::string bytes_;
  int64_t opset_ = 0;
  std::string_view producer_;
  std::vector<OnnxNode> nodes_;
  std::vector<OnnxTensor> tensors_;
  std::vector<OnnxPort> inputs_, outputs_;
  size_t names_ = 0;  // of nodes' inputs and outputs
};

constexpr int64_t kOnnxFloat = 1;

// For messages: without what a terminal would obey, and not too long.
std::string ShownOnnx(std::string_view text);

}  // namespace trireme
