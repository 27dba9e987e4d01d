#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "record/json.h"

namespace trireme {

// The safetensors format: 8 bytes (length of the header, little-endian), a JSON header that says
// for each tensor its type, shape and place, then the data without gaps. What is written here is
// read by Python's safetensors, and the other way round.

using Metadata = std::map<std::string, std::string>;

// Writes float32 tensors one after the other; nothing is kept in memory. One thread.
class SafetensorsWriter {
 public:
  explicit SafetensorsWriter(std::string path, const Metadata& metadata = {});

  void Add(std::string_view name, std::span<const int64_t> shape, std::span<const float> data);
  void Finish();  // writes the header, syncs and closes; without it the file is worthless

  uint64_t bytes() const { return data_begin_ + data_bytes_; }

 private:
  void MoveData(uint64_t new_begin);

  OutputFile file_;
  Json header_ = Json::Object();
  std::set<std::string, std::less<>> names_;
  uint64_t data_begin_;
  uint64_t data_bytes_ = 0;
};

struct TensorInfo {
  std::string name;
  std::string type;  // "F32", "BF16", "I64", ...
  std::vector<int64_t> shape;
  uint64_t count = 0;  // the product of shape
  uint64_t begin = 0;  // bytes from the start of the file
  uint64_t bytes = 0;
};

// Opens a file that nobody vouches for: every number of the header is checked against the file
// before it is used, and whatever is wrong is an Error that names the file. Threads may share it.
class SafetensorsReader {
 public:
  explicit SafetensorsReader(std::string path);

  const std::string& path() const { return file_.path(); }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }  // as they lie in the file
  const Metadata& metadata() const { return metadata_; }
  const TensorInfo* Find(std::string_view name) const;  // null if there is none

  // F32, F64, F16 and BF16 become float; other types are refused. out.size() is tensor.count.
  void Read(const TensorInfo& tensor, std::span<float> out) const;

 private:
  void ReadHeader(const Json& header, uint64_t data_begin);

  InputFile file_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, size_t, std::less<>> index_;
  Metadata metadata_;
};

std::string ShapeText(std::span<const int64_t> shape);  // "[64, 3, 7, 7]"

}  // namespace trireme
