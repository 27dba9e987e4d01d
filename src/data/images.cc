#include "data/images.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "data/broken_pictures.h"
#include "data/bytes.h"
#include "data/scan_cache.h"

namespace trireme {
namespace {

struct Pair {
  const char* train;
  const char* test;
};
constexpr Pair kPairs[] = {
    {"train", "val"}, {"train", "validation"}, {"train", "test"}, {"seg_train", "seg_test"}};

class FileReader : public PictureReader {
 public:
  explicit FileReader(const FileSource& source) : source_(source) {}

  void Fetch(int64_t index) override {
    path_ = source_.path(index);
    picture_.reset();  // it borrows the bytes
    bytes_ = ReadFile(path_, kMaxPictureFile);
  }
  Decoder& Open() override {
    picture_ = OpenPicture({reinterpret_cast<const uint8_t*>(bytes_.data()), bytes_.size()}, path_);
    return *picture_;
  }

 private:
  const FileSource& source_;
  std::string path_, bytes_;
  std::unique_ptr<Decoder> picture_;
};

bool IsFolder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

// The folders of the two parts; both empty where the classes stand in the folder itself.
std::pair<std::string, std::string> FindParts(const std::string& folder,
                                              const DataOptions& options) {
  const std::string& train = options.train_folder;
  const std::string& test = options.test_folder;
  if (!train.empty() || !test.empty()) {
    if (train.empty() || test.empty()) {
      throw UsageError("data.train_folder = '{}' and data.test_folder = '{}': set both or none",
                       train, test);
    }
    RequireFolder(folder + "/" + train, "data.train_folder");
    RequireFolder(folder + "/" + test, "data.test_folder");
    return {train, test};
  }
  for (const Pair& pair : kPairs) {
    if (IsFolder(folder + "/" + pair.train) && IsFolder(folder + "/" + pair.test)) {
      return {pair.train, pair.test};
    }
  }
  for (const Pair& pair : kPairs) {
    if (IsFolder(folder + "/" + pair.train)) {
      throw Error(
          "{}: has {}, but no {} beside it; name both by data.train_folder and data.test_folder, "
          "or "
          "take images:{}/{} and data.test_fraction",
          folder, pair.train, pair.test, folder, pair.train);
    }
  }
  return {};
}

// The label of each class of the scan among `known`.
void Relabel(ScannedFolder& scan, std::span<const std::string> known, const std::string& folder) {
  std::vector<int32_t> place;
  for (const std::string& name : scan.classes) {
    const auto at = std::find(known.begin(), known.end(), name);
    if (at == known.end()) {
      throw Error("{}/{}: no such class among the {} known ones ({}, ...)", folder, name,
                  known.size(), known.front());
    }
    place.push_back(static_cast<int32_t>(at - known.begin()));
  }
  for (int32_t& label : scan.labels) label = place[label];
}

}  // namespace

FileSource::FileSource(const DataOptions& options, std::string folder, PathList files,
                       std::vector<int32_t> labels)
    : PictureSource(options, static_cast<int64_t>(labels.size())),
      folder_(std::move(folder)),
      files_(std::move(files)),
      labels_(std::move(labels)) {}

std::unique_ptr<PictureReader> FileSource::NewReader() const {
  return std::make_unique<FileReader>(*this);
}

std::string FileSource::path(int64_t index) const {
  return (folder_.empty() ? "" : folder_ + "/") + std::string(files_[index]);
}

DataSet OpenImages(const std::string& folder, const DataOptions& options,
                   std::span<const std::string> classes) {
  const auto [train, test] = FindParts(folder, options);
  DataSet data;
  data.classes.assign(classes.begin(), classes.end());
  const auto open = [&](const std::string& part) -> std::unique_ptr<Source> {
    const std::string path = part.empty() ? folder : folder + "/" + part;
    ScannedFolder scan = ScanFolderCached(path);
    if (options.on_error == "skip") {
      for (std::string& message : LeaveOutBroken(path, scan)) {
        data.left_out.push_back(std::move(message));
      }
    }
    if (data.classes.empty()) data.classes = scan.classes;
    Relabel(scan, data.classes, path);
    return std::make_unique<FileSource>(options, path, std::move(scan.files),
                                        std::move(scan.labels));
  };
  data.train = open(train);
  if (!test.empty()) data.test = open(test);
  data.shape = data.train->shape();
  return data;
}

std::unique_ptr<Source> OpenImageFile(const std::string& path, const DataOptions& options) {
  PathList files;
  files.Add(path);
  auto source = std::make_unique<FileSource>(options, "", std::move(files), std::vector{-1});
  const auto reader = source->NewReader();  // what is no picture is said now
  reader->Fetch(0);
  reader->Open();
  return source;
}

}  // namespace trireme
