#include <algorithm>
#include <bit>
#include <utility>

#include "base/assert.h"
#include "base/error.h"
#include "record/safetensors.h"

static_assert(std::endian::native == std::endian::little, "the files are little-endian");

namespace trireme {
namespace {

// The header stands before the data but is known after it: room is left, and the rest filled with
// spaces, which the format allows. A network with more tensors than fit here moves its data once.
constexpr uint64_t kRoom = 4096;

}  // namespace

SafetensorsWriter::SafetensorsWriter(std::string path, const Metadata& metadata)
    : file_(std::move(path)), data_begin_(kRoom) {
  file_.Write(std::string(kRoom, ' '));
  if (metadata.empty()) return;
  Json texts = Json::Object();
  for (const auto& [key, value] : metadata) texts.Add(key, value);
  header_.AddNew("__metadata__", std::move(texts));
}

void SafetensorsWriter::Add(std::string_view name, std::span<const int64_t> shape,
                            std::span<const float> data) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  TRIREME_ASSERT(count == static_cast<int64_t>(data.size()));
  if (name == "__metadata__" || !names_.emplace(name).second) {
    throw Error("{}: the tensor \"{}\" was already written", file_.path(), name);
  }
  const uint64_t end = data_bytes_ + data.size_bytes();
  Json entry = Json::Object();
  entry.AddNew("dtype", "F32");
  entry.AddNew("shape", std::vector<int64_t>(shape.begin(), shape.end()));
  entry.AddNew("data_offsets", std::vector<uint64_t>{data_bytes_, end});
  header_.AddNew(std::string(name), std::move(entry));
  file_.Write(data.data(), data.size_bytes());
  data_bytes_ = end;
}

void SafetensorsWriter::Finish() {
  std::string text = header_.Text();
  const uint64_t needed = (8 + text.size() + 7) / 8 * 8;
  if (needed > data_begin_) MoveData(needed);
  const uint64_t length = data_begin_ - 8;
  text.resize(length, ' ');
  file_.WriteAt(0, &length, 8);
  file_.WriteAt(8, text.data(), text.size());
  file_.Sync();
  file_.Close();
}

void SafetensorsWriter::MoveData(uint64_t new_begin) {
  std::vector<char> piece(std::min<uint64_t>(data_bytes_, 1 << 20));
  for (uint64_t left = data_bytes_; left > 0;) {  // from the end: the new place overlaps the old
    const uint64_t bytes = std::min<uint64_t>(left, piece.size());
    left -= bytes;
    file_.ReadAt(data_begin_ + left, piece.data(), bytes);
    file_.WriteAt(new_begin + left, piece.data(), bytes);
  }
  data_begin_ = new_begin;
}

}  // namespace trireme
