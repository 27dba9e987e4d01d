#include "model/onnx/protobuf.h"

#include <bit>

namespace trireme {
namespace {

constexpr int kVarint = 0, kLengthDelimited = 2, kFixed32 = 5;

}  // namespace

void ProtoMessage::Varint(uint64_t value) {
  while (value >= 0x80) {
    bytes_ += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  bytes_ += static_cast<char>(value);
}

ProtoMessage& ProtoMessage::Int(int field, int64_t value) {
  Tag(field, kVarint);
  Varint(static_cast<uint64_t>(value));
  return *this;
}

ProtoMessage& ProtoMessage::Float(int field, float value) {
  Tag(field, kFixed32);
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int byte = 0; byte < 4; ++byte) bytes_ += static_cast<char>(bits >> (8 * byte));
  return *this;
}

ProtoMessage& ProtoMessage::Bytes(int field, std::string_view bytes) {
  Tag(field, kLengthDelimited);
  Varint(bytes.size());
  bytes_ += bytes;
  return *this;
}

}  // namespace trireme
