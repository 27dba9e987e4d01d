#include "data/image_parts.h"

#include <filesystem>

#include "base/error.h"
#include "data/bytes.h"

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

ImageParts NamedParts(const std::string& folder, const DataOptions& options) {
  if (options.train_folder.empty() || options.test_folder.empty()) {
    throw UsageError("data.train_folder = '{}' and data.test_folder = '{}': set both or none{}",
                     options.train_folder, options.test_folder,
                     options.validation_folder.empty() ? "" : ", with data.validation_folder both");
  }
  RequireFolder(folder + "/" + options.train_folder, "data.train_folder");
  RequireFolder(folder + "/" + options.validation_folder, "data.validation_folder");
  RequireFolder(folder + "/" + options.test_folder, "data.test_folder");
  return {options.train_folder, options.validation_folder, options.test_folder};
}

}  // namespace

ImageParts FindImageParts(const std::string& folder, const DataOptions& options) {
  if (!options.train_folder.empty() || !options.validation_folder.empty() ||
      !options.test_folder.empty()) {
    return NamedParts(folder, options);
  }
  for (const PartNames& names : kPartNames) {
    if (AreThere(folder, names)) return {names.train, names.validation, names.test};
  }
  for (const PartNames& names : kPartNames) {
    if (*names.validation != '\0' || !IsFolder(folder + "/" + names.train)) continue;
    throw Error(
        "{}: has {}, but no {} beside it; name both by data.train_folder and data.test_folder, or "
        "take images:{}/{} and data.test_fraction",
        folder, names.train, names.test, folder, names.train);
  }
  return {};
}

ImageParts FindTwoImageParts(const std::string& folder) {
  for (const PartNames& names : kPartNames) {
    if (*names.validation == '\0' && AreThere(folder, names)) return {names.train, "", names.test};
  }
  return {};
}

}  // namespace trireme
