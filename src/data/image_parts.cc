#include "data/image_parts.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "data/bytes.h"
#include "data/folder_scan.h"

namespace trireme {
namespace {

// The first that is there is taken.
struct PartNames {
  const char* train;
  const char* validation;  // empty: none
  const char* test;
};
constexpr PartNames kPartNames[] = {{"train", "val", "test"},    {"train", "validation", "test"},
                                    {"train", "valid", "test"},  {"train", "", "val"},
                                    {"train", "", "validation"}, {"train", "", "test"},
                                    {"train", "", "valid"},      {"seg_train", "", "seg_test"}};

bool IsFolder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

bool AreThere(const std::string& folder, const PartNames& names) {
  for (const char* name : {names.train, names.validation, names.test}) {
    if (!IsFolder(folder + "/" + name)) return false;  // an empty name: the folder itself
  }
  return true;
}

// Of a folder that holds nothing but a folder, and so on: where several come, as "/ONE/TWO"; "" if
// that is the folder itself, or where it leads to pictures: then the only folder is a class.
std::string PassThrough(const std::string& folder, std::span<const std::string> classes) {
  constexpr int kMostFolders = 8;
  std::string below;
  for (int i = 0; i <= kMostFolders; ++i) {
    const FolderListing listing = ListFolder(folder + below);
    if (!listing.pictures.empty() || listing.folders.empty()) break;
    if (listing.folders.size() > 1) return below;
    if (std::find(classes.begin(), classes.end(), listing.folders[0]) != classes.end()) break;
    below += "/" + listing.folders[0];
  }
  return "";
}

ImageParts NamedParts(const std::string& folder, const DataOptions& options) {
  if (options.train_folder.empty() || options.test_folder.empty()) {
    throw UsageError(
        "data.train_folder = '{}' and data.test_folder = '{}': set both or neither{}",
        options.train_folder, options.test_folder,
        options.validation_folder.empty() ? "" : "; data.validation_folder needs both");
  }
  RequireFolder(folder + "/" + options.train_folder, "data.train_folder");
  RequireFolder(folder + "/" + options.validation_folder, "data.validation_folder");
  RequireFolder(folder + "/" + options.test_folder, "data.test_folder");
  return {options.train_folder, options.validation_folder, options.test_folder};
}

// By the usual names; nothing where none of them is there.
std::optional<ImageParts> UsualParts(const std::string& folder) {
  for (const PartNames& names : kPartNames) {
    if (AreThere(folder, names)) return ImageParts{names.train, names.validation, names.test};
  }
  for (const PartNames& names : kPartNames) {
    if (*names.validation != '\0' || !IsFolder(folder + "/" + names.train)) continue;
    throw Error(
        "{}: has {} but no {}; set data.train_folder and data.test_folder, or use images:{}/{} "
        "with data.test_fraction",
        folder, names.train, names.test, folder, names.train);
  }
  return std::nullopt;
}

}  // namespace

ImageParts FindImageParts(const std::string& folder, const DataOptions& options,
                          std::span<const std::string> classes) {
  const bool named = !options.train_folder.empty() || !options.validation_folder.empty() ||
                     !options.test_folder.empty();
  std::string below;  // of the folder, with a slash before it
  auto found = named ? NamedParts(folder, options) : UsualParts(folder);
  if (!found) {
    below = PassThrough(folder, classes);
    if (!below.empty()) found = UsualParts(folder + below);
  }
  ImageParts parts = found.value_or(ImageParts{});
  const auto place = [&](const std::string& part) {
    const std::string path = below + (part.empty() ? "" : "/" + part);
    const std::string all = path + PassThrough(folder + path, classes);
    return all.empty() ? all : all.substr(1);
  };
  parts.train = place(parts.train);
  if (!parts.validation.empty()) parts.validation = place(parts.validation);
  if (!parts.test.empty()) parts.test = place(parts.test);
  return parts;
}

ImageParts FindTwoImageParts(const std::string& folder) {
  for (const PartNames& names : kPartNames) {
    if (*names.validation == '\0' && AreThere(folder, names)) return {names.train, "", names.test};
  }
  return {};
}

}  // namespace trireme
