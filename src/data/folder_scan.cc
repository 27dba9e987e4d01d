#include "data/folder_scan.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/text.h"
#include "image/decoder.h"

namespace trireme {
namespace {

constexpr int kMaxDepth = 32;  // a link to a folder above would never end

enum class Kind { kFolder, kFile, kOther };

// A link that leads nowhere is taken for a file, and named when it is read.
Kind KindOf(const std::string& path, unsigned char type) {
  if (type != DT_UNKNOWN && type != DT_LNK) {
    return type == DT_DIR ? Kind::kFolder : type == DT_REG ? Kind::kFile : Kind::kOther;
  }
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return Kind::kFile;
  return S_ISDIR(status.st_mode)   ? Kind::kFolder
         : S_ISREG(status.st_mode) ? Kind::kFile
                                   : Kind::kOther;
}

class Scanner {
 public:
  explicit Scanner(const std::string& root) : root_(root) {}

  ScannedFolder Scan() {
    const FolderListing top = ListBelow("");
    if (top.folders.empty()) {
      throw Error(
          "{}: has no class folders; expected one folder per class, as in {}/CLASS/IMAGE.jpg, or "
          "images and labels.csv, with a line for each: its name and its class",
          root_, root_);
    }
    if (!top.pictures.empty()) {
      throw Error(
          "{}: {} images outside the class folders, such as {}; move them into a class folder",
          root_, top.pictures.size(), top.pictures[0]);
    }
    for (const std::string& name : top.folders) {
      if (!IsUtf8(name)) {  // what runs write down of it could not be found again
        throw Error("{}/{}: the class name is not UTF-8; rename the folder", root_, name);
      }
      const size_t before = result_.files.size();
      Walk(name, 1);
      if (result_.files.size() == before) {
        throw Error("{}/{}: this class has no images (.jpg, .jpeg, .png)", root_, name);
      }
      result_.labels.resize(result_.files.size(), static_cast<int32_t>(result_.classes.size()));
      result_.classes.push_back(name);
    }
    return std::move(result_);
  }

  PathList ScanPictures() {
    Walk("", 0);
    return std::move(result_.files);
  }

 private:
  FolderListing ListBelow(const std::string& below) {
    const std::string path = below.empty() ? root_ : root_ + "/" + below;
    result_.directories.push_back({below, DirectoryChanged(path)});  // before it is listed
    return ListFolder(path);
  }

  void Walk(const std::string& below, int depth) {
    if (depth > kMaxDepth) {
      throw Error("{}/{}: more than {} folders deep; check for a link to a folder above", root_,
                  below, kMaxDepth);
    }
    const FolderListing names = ListBelow(below);
    const std::string before = below.empty() ? "" : below + "/";
    for (const std::string& name : names.pictures) result_.files.Add(before + name);
    for (const std::string& name : names.folders) Walk(before + name, depth + 1);
  }

  const std::string& root_;
  ScannedFolder result_;
};

}  // namespace

FolderListing ListFolder(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), closedir);
  if (!directory) throw Error("cannot list {}: {}", path, std::strerror(errno));
  FolderListing names;
  errno = 0;
  while (const dirent* entry = readdir(directory.get())) {
    const std::string name = entry->d_name;
    if (name.starts_with('.') || name == "__MACOSX") continue;  // what archives of a Mac add
    const Kind kind = KindOf(path + "/" + name, entry->d_type);
    if (kind == Kind::kFolder) {
      names.folders.push_back(name);
    } else if (kind == Kind::kFile && HasPictureName(name)) {
      names.pictures.push_back(name);
    }
    errno = 0;
  }
  if (errno != 0) throw Error("cannot list {}: {}", path, std::strerror(errno));
  std::sort(names.folders.begin(), names.folders.end());
  std::sort(names.pictures.begin(), names.pictures.end());
  return names;
}

int64_t DirectoryChanged(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return -1;
  return int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

ScannedFolder ScanFolder(const std::string& folder) { return Scanner(folder).Scan(); }

PathList ScanPictures(const std::string& folder) { return Scanner(folder).ScanPictures(); }

}  // namespace trireme
