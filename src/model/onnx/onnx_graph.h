#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/protobuf.h"

namespace trireme {

// The field numbers and values are those of onnx.proto3, IR version 8; operations are those of
// opset 17 (and of ai.onnx.ml 3).

// What a node is told beside its inputs.
class OnnxAttributes {
 public:
  OnnxAttributes& Int(std::string_view name, int64_t value);
  OnnxAttributes& Float(std::string_view name, float value);
  OnnxAttributes& Ints(std::string_view name, const std::vector<int64_t>& values);
  OnnxAttributes& Texts(std::string_view name, const std::vector<std::string>& values);

  const std::vector<ProtoMessage>& all() const { return all_; }

 private:
  std::vector<ProtoMessage> all_;
};

enum class OnnxType { kFloat = 1, kInt64 = 7, kText = 8 };

// A model being written: nodes in the order in which they are computed. Values have names; one that
// is taken is made unique.
class OnnxGraph {
 public:
  // Of each sample; the number of samples is free.
  std::string Input(const std::string& name, OnnxType type, const std::vector<int64_t>& shape);
  void Output(const std::string& name, const std::string& value, const std::vector<int64_t>& shape);

  std::string Floats(const std::string& name, const std::vector<int64_t>& shape,
                     std::span<const float> values);
  std::string Integers(const std::vector<int64_t>& values);

  // Returns the value that the node makes. `layer` is for people.
  std::string Add(std::string_view op, const std::vector<std::string>& inputs,
                  const OnnxAttributes& attributes = {}, std::string_view layer = {});
  // The same of the operations for tables.
  std::string AddOfTables(std::string_view op, const std::vector<std::string>& inputs,
                          const OnnxAttributes& attributes);

  // The file. `facts`: metadata, names and texts.
  std::string Bytes(const std::string& name,
                    const std::vector<std::pair<std::string, std::string>>& facts) const;

 private:
  std::string Append(std::string_view op, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs, const OnnxAttributes& attributes,
                     std::string_view layer, std::string_view domain);

  ProtoMessage nodes_, tensors_, inputs_, outputs_;  // fields of the graph, each kind by itself
  std::set<std::string> names_, layers_;
  int64_t values_ = 0;
  bool tables_ = false;  // an operation of ai.onnx.ml is there
};

}  // namespace trireme
