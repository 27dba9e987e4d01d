#include "data/images.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "data/broken_pictures.h"
#include "data/image_parts.h"
#include "data/labelled_folder.h"
#include "data/scan_cache.h"

namespace trireme {
namespace {

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

// The label of each class of the scan among `known`.
void Relabel(ScannedFolder& scan, std::span<const std::string> known, const std::string& folder) {
  std::vector<int32_t> place;
  for (const std::string& name : scan.classes) {
    const auto at = std::find(known.begin(), known.end(), name);
    if (at == known.end()) {
      throw Error("{}: class {} is not one of the {} known classes ({}, ...)", folder, name,
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
  const ImageParts parts = FindImageParts(folder, options, classes);
  DataSet data;
  data.classes.assign(classes.begin(), classes.end());
  const auto open = [&](const std::string& part) -> std::unique_ptr<Source> {
    const std::string path = part.empty() ? folder : folder + "/" + part;
    const std::string label_file = FindLabelFile(path);
    ScannedFolder scan =
        label_file.empty() ? ScanFolderCached(path) : ScanLabelledFolder(path, label_file);
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
  data.train = open(parts.train);
  if (!parts.validation.empty()) data.validation = open(parts.validation);
  if (!parts.test.empty()) data.test = open(parts.test);
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
