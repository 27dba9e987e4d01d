#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/error.h"
#include "record/safetensors.h"

namespace trireme {
namespace {

constexpr uint64_t kLongestHeader = 16 << 20;  // the largest networks have less than 1 MiB
constexpr size_t kMostDimensions = 16;

struct Type {
  const char* name;
  uint64_t bytes;
};
constexpr Type kTypes[] = {{"F32", 4}, {"F64", 8}, {"F16", 2}, {"BF16", 2}, {"I64", 8},
                           {"I32", 4}, {"I16", 2}, {"I8", 1},  {"U8", 1},   {"U16", 2},
                           {"U32", 4}, {"U64", 8}, {"BOOL", 1}};

float FromHalf(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 31, mantissa = half & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent == 0) {
    const float small = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -small : small;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

float FromBFloat(uint16_t value) { return std::bit_cast<float>(uint32_t{value} << 16); }

float FromDouble(double value) { return static_cast<float>(value); }

template <class From, class Convert>
void ReadConverted(const InputFile& file, uint64_t begin, std::span<float> out, Convert convert) {
  std::array<From, 4096> piece;
  while (!out.empty()) {
    const size_t count = std::min(out.size(), piece.size());
    file.ReadAt(begin, piece.data(), count * sizeof(From));
    std::transform(piece.begin(), piece.begin() + count, out.begin(), convert);
    begin += count * sizeof(From);
    out = out.subspan(count);
  }
}

std::optional<uint64_t> Product(uint64_t a, uint64_t b) {
  uint64_t result;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

uint64_t NotNegative(const Json& value) {
  const int64_t number = value.AsInt();
  if (number < 0) throw Error("{} is negative", number);
  return static_cast<uint64_t>(number);
}

// Checks a tensor by itself; that tensors do not overlap is seen when all are known.
TensorInfo ReadEntry(const std::string& name, const Json& entry, uint64_t data_begin,
                     uint64_t data_bytes) {
  TensorInfo tensor{.name = name, .type = entry.At("dtype").AsString()};
  const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [&](const Type& known) { return known.name == tensor.type; });
  if (type == std::end(kTypes)) throw Error("unknown type \"{}\"", tensor.type);

  const auto& extents = entry.At("shape").Items();
  if (extents.size() > kMostDimensions) {
    throw Error("it has {} dimensions, too many", extents.size());
  }
  std::optional<uint64_t> count = 1;
  for (const Json& extent : extents) {
    count = Product(*count, NotNegative(extent));
    if (!count) throw Error("the product of its shape is too large");
    tensor.shape.push_back(extent.AsInt());
  }
  const auto bytes = Product(*count, type->bytes);
  if (!bytes) throw Error("the product of its shape is too large");

  const auto& offsets = entry.At("data_offsets").Items();
  if (offsets.size() != 2) throw Error("data_offsets has {} numbers, not 2", offsets.size());
  const uint64_t begin = NotNegative(offsets[0]), end = NotNegative(offsets[1]);
  if (begin > end || end > data_bytes) {
    throw Error("its bytes {} to {} are outside the file's {} bytes of data", begin, end,
                data_bytes);
  }
  if (end - begin != *bytes) {
    throw Error("{} of shape {} needs {} bytes, but the header gives it {}", tensor.type,
                ShapeText(tensor.shape), *bytes, end - begin);
  }
  tensor.count = *count;
  tensor.begin = data_begin + begin;
  tensor.bytes = *bytes;
  return tensor;
}

// By its first bytes, which say no possible length: torch.save writes a zip archive, and before
// version 1.6 wrote a pickle.
bool IsPyTorchFile(uint64_t begin) {
  return (begin & 0xffffffff) == 0x04034b50 || (begin & 0xff) == 0x80;
}

Metadata ReadMetadata(const Json& texts) {
  Metadata metadata;
  for (const auto& [key, value] : texts.Members()) metadata[key] = value.AsString();
  return metadata;
}

// The format wants the data without gaps and without anything after it.
void CheckPlaces(const std::vector<TensorInfo>& sorted, uint64_t data_begin, uint64_t file_bytes) {
  uint64_t end = data_begin;
  for (const TensorInfo& tensor : sorted) {
    if (tensor.begin < end) {
      throw Error("the tensor \"{}\" overlaps the one before it", tensor.name);
    }
    if (tensor.begin > end) {
      throw Error("there are {} unused bytes before the tensor \"{}\"", tensor.begin - end,
                  tensor.name);
    }
    end = tensor.begin + tensor.bytes;
  }
  if (end != file_bytes) throw Error("there are {} bytes after the last tensor", file_bytes - end);
}

}  // namespace

SafetensorsReader::SafetensorsReader(std::string path) : file_(std::move(path)) {
  const std::string& who = file_.path();
  if (file_.size() < 8) {
    throw Error("{}: not a safetensors file: it has {} bytes", who, file_.size());
  }
  uint64_t length;
  file_.ReadAt(0, &length, 8);
  if (length > file_.size() - 8 || length > kLongestHeader) {
    if (IsPyTorchFile(length)) {
      throw Error("{}: is a PyTorch file; save it with safetensors.torch.save_file", who);
    }
    throw Error("{}: not a safetensors file, or cut short: a header of {} bytes in a file of {}",
                who, length, file_.size());
  }
  std::string text(length, '\0');
  file_.ReadAt(8, text.data(), length);
  const Json header = ParseJson(text, who + ": header");
  try {
    ReadHeader(header, 8 + length);
  } catch (const Error& error) {
    throw Error("{}: {}", who, error.what());
  }
}

void SafetensorsReader::ReadHeader(const Json& header, uint64_t data_begin) {
  const uint64_t data_bytes = file_.size() - data_begin;
  for (const auto& [name, entry] : header.Members()) {
    try {
      if (name == "__metadata__") {
        metadata_ = ReadMetadata(entry);
      } else {
        tensors_.push_back(ReadEntry(name, entry, data_begin, data_bytes));
      }
    } catch (const Error& error) {
      throw Error("in the header, tensor \"{}\": {}", name.substr(0, 200), error.what());
    }
  }
  std::stable_sort(tensors_.begin(), tensors_.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.bytes) < std::pair(b.begin, b.bytes);
  });
  CheckPlaces(tensors_, data_begin, file_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) index_[tensors_[i].name] = i;
}

const TensorInfo* SafetensorsReader::Find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

void SafetensorsReader::Read(const TensorInfo& tensor, std::span<float> out) const {
  TRIREME_ASSERT(out.size() == tensor.count);
  if (tensor.type == "F32") {
    file_.ReadAt(tensor.begin, out.data(), out.size_bytes());
  } else if (tensor.type == "F64") {
    ReadConverted<double>(file_, tensor.begin, out, FromDouble);
  } else if (tensor.type == "F16") {
    ReadConverted<uint16_t>(file_, tensor.begin, out, FromHalf);
  } else if (tensor.type == "BF16") {
    ReadConverted<uint16_t>(file_, tensor.begin, out, FromBFloat);
  } else {
    throw Error("{}: tensor \"{}\" has type {}; expected F32, F64, F16 or BF16", path(),
                tensor.name, tensor.type);
  }
}

std::string ShapeText(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace trireme
