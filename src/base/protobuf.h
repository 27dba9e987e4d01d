#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// Messages of protocol buffers (protobuf.dev, "Encoding"), written and read field by field: all
// that ONNX files and TensorBoard's events need, so that no library is.

enum class ProtoWire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

class ProtoMessage {
 public:
  ProtoMessage& Int(int field, int64_t value);
  ProtoMessage& Float(int field, float value);
  ProtoMessage& Double(int field, double value);
  ProtoMessage& Bytes(int field, std::string_view bytes);  // also text
  ProtoMessage& Message(int field, const ProtoMessage& message) {
    return Bytes(field, message.bytes_);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void Varint(uint64_t value);
  void Fixed(uint64_t value, int num_bytes);
  void Tag(int field, ProtoWire wire) { Varint(uint64_t(field) << 3 | uint64_t(wire)); }

  std::string bytes_;
};

// A field as it lies in the message. What is asked of it as another kind than it is, is an Error.
struct ProtoField {
  int number = 0;
  ProtoWire wire = ProtoWire::kVarint;
  uint64_t value = 0;      // of a number
  std::string_view bytes;  // of a text or a message: a part of what is read
  uint64_t at = 0;         // bytes from the beginning of the file

  int64_t Int() const;
  float Float() const;
  std::string_view Bytes() const;
  // A number, or many in one field ("packed"). Never makes `all` longer than `most`.
  void AddInts(std::vector<int64_t>& all, size_t most) const;
  void AddFloats(std::vector<float>& all, size_t most) const;
};

// The fields of a message that nobody vouches for, one after the other. An Error says where it is
// cut or damaged: in bytes from the beginning of the file that it is a part of. Copies nothing.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view file) : rest_(file) {}
  explicit ProtoReader(const ProtoField& message);

  bool Next(ProtoField& field);  // false: the message is over

 private:
  uint64_t Varint();
  std::string_view Take(uint64_t bytes);

  std::string_view rest_;
  uint64_t at_ = 0;
};

}  // namespace trireme
