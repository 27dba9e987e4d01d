#include "data/idx.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "data/bytes.h"
#include "data/memory_source.h"

namespace trireme {
namespace {

constexpr int kUnsignedByte = 8;
constexpr int64_t kMaxSampleValues = std::numeric_limits<int32_t>::max();

struct IdxFile {
  std::string path;
  std::vector<int64_t> sizes;
  std::vector<uint8_t> bytes;
  size_t begin = 0;  // of the data
};

// Checks everything that the header says against the bytes that are there.
IdxFile ReadIdx(const std::string& path) {
  IdxFile file{.path = path, .bytes = ReadBytes(path)};
  const std::vector<uint8_t>& bytes = file.bytes;
  if (bytes.size() < 4 || bytes[0] != 0 || bytes[1] != 0) {
    throw Error("{}: not an idx file: the first two bytes must be 0", path);
  }
  if (bytes[2] != kUnsignedByte) {
    throw Error("{}: idx type {} at byte 2; only unsigned bytes (8) are supported", path, bytes[2]);
  }
  const size_t dimensions = bytes[3];
  file.begin = 4 + 4 * dimensions;
  if (dimensions == 0 || bytes.size() < file.begin) {
    throw Error("{}: {} bytes are too short for an idx header of {} dimensions", path, bytes.size(),
                dimensions);
  }
  const auto available = static_cast<int64_t>(bytes.size() - file.begin);
  int64_t expected = 1;
  for (size_t d = 0; d < dimensions; ++d) {
    const uint8_t* p = &bytes[4 + 4 * d];
    const int64_t size = int64_t{p[0]} << 24 | p[1] << 16 | p[2] << 8 | p[3];
    if (size == 0) throw Error("{}: size {} (byte {}) is 0", path, d + 1, 4 + 4 * d);
    if (size > available / expected) {
      throw Error("{}: the header asks for more data than the {} bytes after it (size {} is {})",
                  path, available, d + 1, size);
    }
    expected *= size;
    file.sizes.push_back(size);
  }
  if (expected != available) {
    throw Error("{}: the header announces {} bytes, but {} follow", path, expected, available);
  }
  return file;
}

SampleShape PictureShape(const IdxFile& file) {
  const std::vector<int64_t>& sizes = file.sizes;
  if (sizes.size() != 3 && sizes.size() != 4) {
    throw Error("{}: {} dimensions at byte 3; images have 3 (count, height, width) or 4", file.path,
                sizes.size());
  }
  const int64_t channels = sizes.size() == 4 ? sizes[3] : 1;
  if (sizes[1] * sizes[2] * channels > kMaxSampleValues) {
    throw Error("{}: images of {} x {} x {} are too large", file.path, sizes[1], sizes[2],
                channels);
  }
  return {static_cast<int>(sizes[1]), static_cast<int>(sizes[2]), static_cast<int>(channels)};
}

std::vector<int32_t> ReadLabels(const std::string& path, int num_classes) {
  const IdxFile file = ReadIdx(path);
  if (file.sizes.size() != 1) {
    throw Error("{}: {} dimensions at byte 3; labels have 1", path, file.sizes.size());
  }
  std::vector<int32_t> labels(file.bytes.begin() + static_cast<ptrdiff_t>(file.begin),
                              file.bytes.end());
  for (size_t i = 0; i < labels.size(); ++i) {
    if (num_classes > 0 && labels[i] >= num_classes) {
      throw Error("{}: label {} of record {} (byte {}) is out of range for {} classes", path,
                  labels[i], i, file.begin + i, num_classes);
    }
  }
  return labels;
}

struct Part {
  std::unique_ptr<Source> source;
  int32_t largest_label = -1;
};

std::vector<std::string> Names(const std::string& part, const std::string& what,
                               std::initializer_list<int> dimensions) {
  std::vector<std::string> names;
  for (const int d : dimensions) {
    names.push_back(fmt::format("{}-{}-idx{}-ubyte", part, what, d));
    names.push_back(fmt::format("{}-{}.idx{}-ubyte", part, what, d));
  }
  return names;
}

// Nothing if neither file is there.
Part OpenPart(const std::string& folder, const std::string& part, int num_classes) {
  const std::vector<std::string> picture_names = Names(part, "images", {3, 4});
  const std::vector<std::string> label_names = Names(part, "labels", {1});
  const std::string pictures_path = FindFile(folder, picture_names);
  const std::string labels_path = FindFile(folder, label_names);
  if (pictures_path.empty() && labels_path.empty()) return {};
  if (pictures_path.empty() || labels_path.empty()) {
    throw Error("{}: no {} (plain or .gz) next to {}", folder,
                pictures_path.empty() ? picture_names[0] : label_names[0],
                pictures_path.empty() ? labels_path : pictures_path);
  }
  std::vector<int32_t> labels = ReadLabels(labels_path, num_classes);
  IdxFile pictures = ReadIdx(pictures_path);
  const SampleShape shape = PictureShape(pictures);
  if (pictures.sizes[0] != static_cast<int64_t>(labels.size())) {
    throw Error("{} holds {} images, but {} holds {} labels", pictures_path, pictures.sizes[0],
                labels_path, labels.size());
  }
  const int32_t largest = *std::max_element(labels.begin(), labels.end());
  return {std::make_unique<ByteSource>(shape, std::move(pictures.bytes), pictures.begin,
                                       std::move(labels)),
          largest};
}

}  // namespace

DataSet OpenIdxFolder(const std::string& folder, std::vector<std::string> classes) {
  const int num_classes = static_cast<int>(classes.size());
  Part train = OpenPart(folder, "train", num_classes);
  if (!train.source) {
    throw Error("{}: no train-images-idx3-ubyte (plain or .gz) in this folder", folder);
  }
  Part test = OpenPart(folder, "t10k", num_classes);
  if (test.source && test.source->shape() != train.source->shape()) {
    const SampleShape& a = train.source->shape();
    const SampleShape& b = test.source->shape();
    throw Error("{}: training images are {} x {} x {}, test images {} x {} x {}", folder, a.height,
                a.width, a.channels, b.height, b.width, b.channels);
  }
  for (int i = 0; num_classes == 0 && i <= std::max(train.largest_label, test.largest_label); ++i) {
    classes.push_back(std::to_string(i));
  }
  return {.shape = train.source->shape(),
          .classes = std::move(classes),
          .train = std::move(train.source),
          .test = std::move(test.source)};
}

std::unique_ptr<Source> OpenIdxPictures(const std::string& path) {
  IdxFile file = ReadIdx(path);
  const SampleShape shape = PictureShape(file);
  std::vector<int32_t> labels(static_cast<size_t>(file.sizes[0]), -1);
  return std::make_unique<ByteSource>(shape, std::move(file.bytes), file.begin, std::move(labels));
}

bool LooksLikeIdx(std::span<const uint8_t> bytes) {
  return bytes.size() >= 4 && bytes[0] == 0 && bytes[1] == 0 && bytes[3] >= 1 && bytes[3] <= 8;
}

}  // namespace trireme
