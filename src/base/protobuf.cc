#include "base/protobuf.h"

#include <bit>
#include <cstring>

#include "base/error.h"

namespace trireme {

static_assert(std::endian::native == std::endian::little, "numbers of a message are little-endian");

void ProtoMessage::Varint(uint64_t value) {
  while (value >= 0x80) {
    bytes_ += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  bytes_ += static_cast<char>(value);
}

void ProtoMessage::Fixed(uint64_t value, int num_bytes) {
  for (int byte = 0; byte < num_bytes; ++byte) bytes_ += static_cast<char>(value >> (8 * byte));
}

ProtoMessage& ProtoMessage::Int(int field, int64_t value) {
  Tag(field, ProtoWire::kVarint);
  Varint(static_cast<uint64_t>(value));
  return *this;
}

ProtoMessage& ProtoMessage::Float(int field, float value) {
  Tag(field, ProtoWire::kFixed32);
  Fixed(std::bit_cast<uint32_t>(value), 4);
  return *this;
}

ProtoMessage& ProtoMessage::Double(int field, double value) {
  Tag(field, ProtoWire::kFixed64);
  Fixed(std::bit_cast<uint64_t>(value), 8);
  return *this;
}

ProtoMessage& ProtoMessage::Bytes(int field, std::string_view bytes) {
  Tag(field, ProtoWire::kBytes);
  Varint(bytes.size());
  bytes_ += bytes;
  return *this;
}

namespace {

[[noreturn]] void RefuseKind(const ProtoField& field) {
  throw Error("damaged at byte {}: field {} is of another kind", field.at, field.number);
}

[[noreturn]] void RefuseLength(const ProtoField& field, size_t most) {
  throw Error("damaged at byte {}: field {} holds more than {} numbers", field.at, field.number,
              most);
}

}  // namespace

int64_t ProtoField::Int() const {
  if (wire != ProtoWire::kVarint) RefuseKind(*this);
  return static_cast<int64_t>(value);
}

float ProtoField::Float() const {
  if (wire != ProtoWire::kFixed32) RefuseKind(*this);
  return std::bit_cast<float>(static_cast<uint32_t>(value));
}

std::string_view ProtoField::Bytes() const {
  if (wire != ProtoWire::kBytes) RefuseKind(*this);
  return bytes;
}

void ProtoField::AddInts(std::vector<int64_t>& all, size_t most) const {
  const auto add = [&](int64_t x) {
    if (all.size() >= most) RefuseLength(*this, most);
    all.push_back(x);
  };
  if (wire != ProtoWire::kBytes) return add(Int());
  int64_t x = 0;
  int shift = 0;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (shift > 63) RefuseKind(*this);
    x |= static_cast<int64_t>(uint64_t{byte & 0x7Fu} << shift);
    shift += 7;
    if (byte >= 0x80) continue;
    add(x);
    x = shift = 0;
  }
  if (shift != 0) RefuseKind(*this);
}

void ProtoField::AddFloats(std::vector<float>& all, size_t most) const {
  if (wire != ProtoWire::kBytes) {
    if (all.size() >= most) RefuseLength(*this, most);
    all.push_back(Float());
    return;
  }
  const size_t count = bytes.size() / sizeof(float);
  if (bytes.size() % sizeof(float) != 0) RefuseKind(*this);
  if (count > most - all.size()) RefuseLength(*this, most);
  const size_t before = all.size();
  all.resize(before + count);
  std::memcpy(all.data() + before, bytes.data(), bytes.size());
}

ProtoReader::ProtoReader(const ProtoField& message) : rest_(message.Bytes()), at_(message.at) {}

uint64_t ProtoReader::Varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(Take(1)[0]);
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
  throw Error("damaged at byte {}: a number without end", at_);
}

std::string_view ProtoReader::Take(uint64_t bytes) {
  if (bytes > rest_.size()) {
    throw Error("cut or damaged at byte {}: {} more bytes are promised, {} are there", at_, bytes,
                rest_.size());
  }
  const std::string_view taken = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  at_ += bytes;
  return taken;
}

bool ProtoReader::Next(ProtoField& field) {
  if (rest_.empty()) return false;
  const uint64_t begin = at_, tag = Varint();
  if (tag >> 3 == 0 || tag >> 3 > 1 << 29) throw Error("damaged at byte {}: no field", begin);
  field = {.number = int(tag >> 3), .wire = ProtoWire(tag & 7), .value = 0, .bytes = {}, .at = at_};
  const auto fixed = [&](size_t bytes) { std::memcpy(&field.value, Take(bytes).data(), bytes); };
  switch (field.wire) {
    case ProtoWire::kVarint:
      field.value = Varint();
      return true;
    case ProtoWire::kFixed64:
      fixed(8);
      return true;
    case ProtoWire::kFixed32:
      fixed(4);
      return true;
    case ProtoWire::kBytes: {
      const uint64_t length = Varint();
      field.at = at_;
      field.bytes = Take(length);
      return true;
    }
  }
  throw Error("damaged at byte {}: no field", begin);
}

}  // namespace trireme
