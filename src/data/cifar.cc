#include "data/cifar.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "data/bytes.h"
#include "data/memory_source.h"

namespace trireme {
namespace {

constexpr int kClasses = 10;
constexpr SampleShape kShape = {32, 32, 3};

// The batches of one part by name; a plain file is preferred to its packed twin.
std::vector<std::string> FindBatches(const std::string& folder, std::string_view part) {
  std::map<std::string, std::string> found;  // name without .gz -> path
  std::error_code error;
  for (auto i = std::filesystem::directory_iterator(folder, error);
       !error && i != std::filesystem::directory_iterator(); i.increment(error)) {
    std::string name = i->path().filename().string();
    const bool packed = name.ends_with(".gz");
    if (packed) name.resize(name.size() - 3);
    if (!name.starts_with(part) || !name.ends_with(".bin")) continue;
    if (packed) {
      found.emplace(name, i->path().string());
    } else {
      found[name] = i->path().string();
    }
  }
  if (error) throw Error("{}: {}", folder, error.message());
  std::vector<std::string> paths;
  for (auto& [name, path] : found) paths.push_back(std::move(path));
  return paths;
}

std::vector<std::string> ReadClassNames(const std::string& folder) {
  std::vector<std::string> names;
  const std::string found = FindFile(folder, std::vector<std::string>{"batches.meta.txt"});
  if (found.empty()) {
    for (int i = 0; i < kClasses; ++i) names.push_back(std::to_string(i));
    return names;
  }
  const std::vector<uint8_t> bytes = ReadBytes(found);
  std::string line;
  for (const uint8_t byte : bytes) {
    if (byte == '\r') continue;
    if (byte != '\n') {
      line += static_cast<char>(byte);
    } else if (!line.empty()) {
      names.push_back(std::exchange(line, ""));
    }
  }
  if (!line.empty()) names.push_back(line);
  if (names.size() != kClasses) {
    throw Error("{}: has {} class names; expected {}, one per line", found, names.size(), kClasses);
  }
  return names;
}

void AppendRecords(const std::string& path, std::vector<uint8_t>& pixels,
                   std::vector<int32_t>& labels) {
  const std::vector<uint8_t> bytes = ReadBytes(path);
  const auto size = static_cast<int64_t>(bytes.size());
  if (size % kCifarRecordBytes != 0) {
    throw Error("{}: {} bytes are not a whole number of {}-byte records; record {} is cut short",
                path, size, kCifarRecordBytes, size / kCifarRecordBytes);
  }
  const size_t plane = kShape.height * kShape.width;
  size_t out = pixels.size();
  pixels.resize(out + static_cast<size_t>(size / kCifarRecordBytes) * 3 * plane);
  for (int64_t begin = 0; begin < size; begin += kCifarRecordBytes) {
    const uint8_t* record = bytes.data() + begin;
    if (record[0] >= kClasses) {
      throw Error("{}: label {} of record {} (byte {}) is out of range for {} classes", path,
                  record[0], begin / kCifarRecordBytes, begin, kClasses);
    }
    labels.push_back(record[0]);
    for (size_t i = 0; i < plane; ++i) {
      for (size_t c = 0; c < 3; ++c) pixels[out++] = record[1 + c * plane + i];
    }
  }
}

}  // namespace

std::unique_ptr<Source> OpenCifarRecords(const std::vector<std::string>& paths) {
  std::vector<uint8_t> pixels;
  std::vector<int32_t> labels;
  for (const std::string& path : paths) AppendRecords(path, pixels, labels);
  return std::make_unique<ByteSource>(kShape, std::move(pixels), 0, std::move(labels));
}

DataSet OpenCifarFolder(const std::string& folder) {
  const std::vector<std::string> train = FindBatches(folder, "data_batch");
  const std::vector<std::string> test = FindBatches(folder, "test_batch");
  if (train.empty()) {
    throw Error(
        "{}: no data_batch*.bin (plain or .gz) in this folder; expected the binary version of "
        "CIFAR-10",
        folder);
  }
  return {.shape = kShape,
          .classes = ReadClassNames(folder),
          .train = OpenCifarRecords(train),
          .test = test.empty() ? nullptr : OpenCifarRecords(test)};
}

}  // namespace trireme
