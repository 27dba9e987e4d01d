#include "data/scan_cache.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/text.h"

namespace trireme {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 31;
constexpr size_t kDigits = 64;  // of a SHA-256

// Clocks of file systems tick in steps: a directory that changed within the last seconds may change
// again without showing it.
constexpr int64_t kSettledNs = 3'000'000'000;

class Fields {
 public:
  explicit Fields(const std::vector<std::string>& fields) : fields_(fields) {}
  const std::string* Next() { return at_ < fields_.size() ? &fields_[at_++] : nullptr; }
  // A number of things that follow, at most as many as there are fields.
  std::optional<int64_t> Number() {
    const std::string* field = Next();
    return field == nullptr ? std::nullopt : ParseNumber<int64_t>(*field);
  }
  std::optional<size_t> Count() {
    const auto number = Number();
    if (!number || *number < 0 || *number > std::ssize(fields_)) return std::nullopt;
    return static_cast<size_t>(*number);
  }

 private:
  const std::vector<std::string>& fields_;
  size_t at_ = 0;
};

std::vector<std::string> ToFields(const std::string& folder, const ScannedFolder& scan) {
  std::vector<std::string> fields = {folder, std::to_string(scan.directories.size())};
  for (const auto& directory : scan.directories) {
    fields.push_back(directory.path);
    fields.push_back(std::to_string(directory.changed_ns));
  }
  fields.push_back(std::to_string(scan.classes.size()));
  fields.insert(fields.end(), scan.classes.begin(), scan.classes.end());
  fields.push_back(std::to_string(scan.files.size()));
  for (size_t i = 0; i < scan.files.size(); ++i) {
    fields.emplace_back(scan.files[i]);
    fields.push_back(std::to_string(scan.labels[i]));
  }
  return fields;
}

std::optional<ScannedFolder> FromFields(const std::string& folder,
                                        const std::vector<std::string>& all) {
  Fields fields(all);
  const std::string* name = fields.Next();
  if (name == nullptr || *name != folder) return std::nullopt;
  ScannedFolder scan;
  const auto directories = fields.Count();
  for (size_t i = 0; i < directories.value_or(0); ++i) {
    const std::string* path = fields.Next();
    const auto changed = fields.Number();
    if (path == nullptr || !changed) return std::nullopt;
    if (DirectoryChanged(path->empty() ? folder : folder + "/" + *path) != *changed) {
      return std::nullopt;
    }
    scan.directories.push_back({*path, *changed});
  }
  const auto classes = fields.Count();
  for (size_t i = 0; i < classes.value_or(0); ++i) {
    const std::string* one = fields.Next();
    if (one == nullptr) return std::nullopt;
    scan.classes.push_back(*one);
  }
  const auto files = fields.Count();
  for (size_t i = 0; i < files.value_or(0); ++i) {
    const std::string* path = fields.Next();
    const auto label = fields.Number();
    if (path == nullptr || !label || *label < 0 || *label >= std::ssize(scan.classes)) {
      return std::nullopt;
    }
    scan.files.Add(*path);
    scan.labels.push_back(static_cast<int32_t>(*label));
  }
  if (!files || *files == 0) return std::nullopt;
  return scan;
}

bool Settled(const ScannedFolder& scan, int64_t begin_ns) {
  for (const auto& directory : scan.directories) {
    if (directory.changed_ns > begin_ns - kSettledNs) return false;
  }
  return true;
}

}  // namespace

std::string CacheFile(const std::string& folder, const std::string& what) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache == nullptr && home == nullptr) return "";
  const std::string place = cache != nullptr ? cache : std::string(home) + "/.cache";
  return place + "/trireme/" + what + "-" + Sha256Hex(folder).substr(0, 16);
}

void WriteCache(const std::string& path, const std::vector<std::string>& fields) {
  if (path.empty()) return;
  std::string text;
  for (const std::string& field : fields) text.append(field).push_back('\0');
  try {
    MakeDirectories(std::filesystem::path(path).parent_path());
    ReplaceFile(path, text + Sha256Hex(text));
  } catch (const Error&) {  // a folder that cannot be written: the next run looks again
  }
}

std::optional<std::vector<std::string>> ReadCache(const std::string& path) {
  if (path.empty() || !Exists(path)) return std::nullopt;
  try {
    const std::string whole = ReadFile(path, kMaxBytes);
    if (whole.size() < kDigits) return std::nullopt;
    const std::string_view text = std::string_view(whole).substr(0, whole.size() - kDigits);
    if (Sha256Hex(text) != std::string_view(whole).substr(text.size())) return std::nullopt;
    std::vector<std::string> fields = Split(text, '\0');
    fields.pop_back();  // behind the last zero
    return fields;
  } catch (const Error&) {
    return std::nullopt;
  }
}

ScannedFolder ScanFolderCached(const std::string& folder) {
  std::error_code error;
  const std::string whole = std::filesystem::canonical(folder, error).string();
  if (error) return ScanFolder(folder);
  const std::string path = CacheFile(whole, "scan");
  if (const auto fields = ReadCache(path)) {
    if (auto scan = FromFields(whole, *fields)) return std::move(*scan);
  }
  const int64_t begin_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
  ScannedFolder scan = ScanFolder(folder);
  if (Settled(scan, begin_ns)) WriteCache(path, ToFields(whole, scan));
  return scan;
}

}  // namespace trireme
