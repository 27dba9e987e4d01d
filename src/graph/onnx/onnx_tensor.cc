#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/half.h"
#include "graph/onnx/onnx_file.h"

namespace trireme {
namespace {

// TensorProto.DataType
enum Type : int64_t {
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kInt32 = 6,
  kInt64 = 7,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kBFloat16 = 16,
};

constexpr size_t kMostExtents = 16;

float FromBFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

template <class T, class Out, class Convert>
std::vector<Out> Converted(std::string_view raw, Convert convert) {
  std::vector<Out> values(raw.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, raw.data() + i * sizeof(T), sizeof(T));
    values[i] = Out(convert(value));
  }
  return values;
}

template <class T, class Out>
std::vector<Out> Cast(std::string_view raw) {
  return Converted<T, Out>(raw, [](T value) { return value; });
}

}  // namespace

OnnxTensor::OnnxTensor(const ProtoField& message) {
  ProtoReader reader(message);
  std::string_view elsewhere;
  bool external = false;
  for (ProtoField field; reader.Next(field);) {
    switch (field.number) {
      case 1:
        field.AddInts(shape_, kMostExtents);
        break;
      case 2:
        type_ = field.Int();
        break;
      case 4:   // float_data
      case 5:   // int32_data
      case 7:   // int64_data
      case 10:  // double_data
        values_.push_back(field);
        if (field.wire != ProtoWire::kBytes && values_.size() > 1024) {
          throw Error("damaged at byte {}: values of a tensor that are not packed", field.at);
        }
        break;
      case 8:
        name_ = field.Bytes();
        break;
      case 9:
        raw_ = field.Bytes();
        break;
      case 13: {  // external_data
        external = true;
        ProtoReader entry(field);
        std::string_view key, value;
        for (ProtoField part; entry.Next(part);) {
          if (part.number == 1) key = part.Bytes();
          if (part.number == 2) value = part.Bytes();
        }
        if (key == "location") elsewhere = value;
        break;
      }
      case 14:
        external = external || field.Int() == 1;
        break;
      default:
        break;
    }
  }
  if (external) {
    throw Error(
        "tensor \"{}\" lies in another file{}; save the model as one file (PyTorch: "
        "torch.onnx.export(..., external_data=False))",
        ShownOnnx(name_), elsewhere.empty() ? "" : fmt::format(", {}", ShownOnnx(elsewhere)));
  }
  constexpr size_t kMost = size_t{1} << 40;
  for (const int64_t extent : shape_) {
    if (extent < 0 || (extent > 0 && size_ > kMost / size_t(extent))) {
      throw Error("tensor \"{}\" has no possible shape", ShownOnnx(name_));
    }
    size_ *= size_t(extent);
  }
  CheckLength();
}

bool OnnxTensor::holds_integers() const {
  return type_ == kInt64 || type_ == kInt32 || type_ == kBool || type_ == kUint8 || type_ == kInt8;
}

bool OnnxTensor::holds_floats() const {
  return type_ == kFloat || type_ == kDouble || type_ == kFloat16 || type_ == kBFloat16;
}

std::string_view OnnxTensor::Raw(size_t width) const {
  if (raw_.size() / width == size_ && raw_.size() % width == 0) return raw_;
  throw Error("tensor \"{}\" holds {} bytes for {} values", ShownOnnx(name_), raw_.size(), size_);
}

// A promise of values that are not there would have memory taken for them.
void OnnxTensor::CheckLength() const {
  if (values_.empty()) {
    if (type_ == kInt64 || type_ == kDouble) Raw(8);
    if (type_ == kFloat || type_ == kInt32) Raw(4);
    if (type_ == kFloat16 || type_ == kBFloat16) Raw(2);
    return;
  }
  size_t most = 0;  // a value has at least a byte
  for (const ProtoField& field : values_) most += std::max<size_t>(1, field.bytes.size());
  if (size_ <= most) return;
  throw Error("tensor \"{}\" holds at most {} values, not {}", ShownOnnx(name_), most, size_);
}

std::vector<float> OnnxTensor::Floats() const {
  if (!holds_floats())
    throw Error("tensor \"{}\" holds no floating-point numbers", ShownOnnx(name_));
  if (values_.empty()) {
    if (type_ == kFloat) return Cast<float, float>(Raw(4));
    if (type_ == kDouble) return Cast<double, float>(Raw(8));
    if (type_ == kFloat16) return Converted<uint16_t, float>(Raw(2), FloatOfHalf);
    return Converted<uint16_t, float>(Raw(2), FromBFloat);
  }
  std::vector<float> all;
  for (const ProtoField& field : values_) {
    if (type_ == kFloat && field.number == 4) {
      field.AddFloats(all, size_);
    } else if (type_ == kDouble && field.number == 10 && field.wire == ProtoWire::kBytes) {
      const auto more = Cast<double, float>(field.bytes);
      all.insert(all.end(), more.begin(), more.end());
    } else if (field.number == 5 && (type_ == kFloat16 || type_ == kBFloat16)) {
      std::vector<int64_t> bits;
      field.AddInts(bits, size_);
      for (const int64_t b : bits) {
        all.push_back(type_ == kFloat16 ? FloatOfHalf(uint16_t(b)) : FromBFloat(uint16_t(b)));
      }
    }
  }
  if (all.size() == size_) return all;
  throw Error("tensor \"{}\" holds {} values, not {}", ShownOnnx(name_), all.size(), size_);
}

std::vector<int64_t> OnnxTensor::Integers(size_t most) const {
  if (!holds_integers()) throw Error("tensor \"{}\" holds no integers", ShownOnnx(name_));
  if (size_ > most) throw Error("tensor \"{}\" holds {} integers", ShownOnnx(name_), size_);
  std::vector<int64_t> all;
  if (values_.empty()) {
    if (type_ == kInt64) return Cast<int64_t, int64_t>(Raw(8));
    if (type_ == kInt32) return Cast<int32_t, int64_t>(Raw(4));
    if (type_ == kInt8) return Cast<int8_t, int64_t>(Raw(1));
    return Cast<uint8_t, int64_t>(Raw(1));
  }
  for (const ProtoField& field : values_) {
    if (field.number == 5 || field.number == 7) field.AddInts(all, size_);
  }
  if (all.size() == size_) return all;
  throw Error("tensor \"{}\" holds {} values, not {}", ShownOnnx(name_), all.size(), size_);
}

}  // namespace trireme
