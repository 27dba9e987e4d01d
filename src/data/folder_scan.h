#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

constexpr size_t kMaxPictureFile = size_t{1} << 29;  // bytes; larger files are refused

// Many paths in one stretch of memory.
class PathList {
 public:
  void Add(std::string_view path) {
    text_.append(path);
    ends_.push_back(text_.size());
  }
  size_t size() const { return ends_.size(); }
  std::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(text_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string text_;
  std::vector<size_t> ends_;
};

// A folder whose folders are classes: FOLDER/CLASS/..., pictures at any depth.
struct ScannedFolder {
  struct Directory {
    std::string path;        // below the folder; empty: itself
    int64_t changed_ns = 0;  // when a name in it came or went
  };

  std::vector<std::string> classes;  // sorted
  PathList files;                    // CLASS/.../NAME.jpg, class by class and sorted in each
  std::vector<int32_t> labels;       // of the files
  std::vector<Directory> directories;
};

// What a folder holds, sorted: names that begin with a dot and files that are not named as pictures
// are left alone.
struct FolderListing {
  std::vector<std::string> folders, pictures;
};
FolderListing ListFolder(const std::string& path);

// Lists the folder and what is below it. No class, a class without a picture, and pictures beside
// the classes are errors.
ScannedFolder ScanFolder(const std::string& folder);

// All pictures in the folder and below it, whatever their folders mean.
PathList ScanPictures(const std::string& folder);

// When a name in the directory came or went, or -1.
int64_t DirectoryChanged(const std::string& path);

}  // namespace trireme
