#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace trireme {

// A message of protocol buffers as bytes (protobuf.dev, "Encoding"), written field by field: all
// that an ONNX file needs, so that no library is.
class ProtoMessage {
 public:
  ProtoMessage& Int(int field, int64_t value);
  ProtoMessage& Float(int field, float value);
  ProtoMessage& Bytes(int field, std::string_view bytes);  // also text
  ProtoMessage& Message(int field, const ProtoMessage& message) {
    return Bytes(field, message.bytes_);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void Varint(uint64_t value);
  void Tag(int field, int wire) { Varint(uint64_t(field) << 3 | uint64_t(wire)); }

  std::string bytes_;
};

}  // namespace trireme
