#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "data/folder_scan.h"
#include "data/options.h"
#include "data/picture_source.h"
#include "data/source.h"

namespace trireme {

// Pictures in files, decoded when they are read.
class FileSource : public PictureSource {
 public:
  FileSource(const DataOptions& options, std::string folder, PathList files,
             std::vector<int32_t> labels);

  int32_t label(int64_t index) const override { return labels_[index]; }
  std::string NameOf(int64_t index) const override { return std::string(name(index)); }
  std::unique_ptr<PictureReader> NewReader() const override;
  std::string path(int64_t index) const;
  std::string_view name(int64_t index) const { return files_[index]; }  // CLASS/NAME.jpg

 private:
  const std::string folder_;
  const PathList files_;
  const std::vector<int32_t> labels_;
};

// Class folders, in the parts that FindImageParts sees.
DataSet OpenImages(const std::string& folder, const DataOptions& options,
                   std::span<const std::string> classes);

// One picture to classify.
std::unique_ptr<Source> OpenImageFile(const std::string& path, const DataOptions& options);

}  // namespace trireme
