#include "data/labelled_folder.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/csv_field.h"
#include "data/csv_labels.h"

namespace trireme {
namespace {

constexpr size_t kMaxLabelFile = size_t{1} << 31;

bool IsFile(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

std::vector<std::string> CsvFilesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with('.') && ToLower(entry.path().extension().string()) == ".csv") {
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Names of pictures as people write them: with the folder before it, without the ending.
class PictureNames {
 public:
  PictureNames(const std::string& folder, const PathList& files)
      : before_(std::filesystem::path(folder).filename().string() + "/") {
    for (size_t i = 0; i < files.size(); ++i) places_.emplace(files[i], i);
  }

  std::optional<size_t> Find(std::string_view field) const {
    std::string_view name = TrimField(field);
    if (name.starts_with("./")) name.remove_prefix(2);
    if (const auto found = FindName(name)) return found;
    if (name.starts_with(before_)) return FindName(name.substr(before_.size()));
    return std::nullopt;
  }

 private:
  std::optional<size_t> FindName(std::string_view name) const {
    for (const char* ending : {"", ".jpg", ".jpeg", ".png", ".JPG", ".JPEG", ".PNG"}) {
      const auto found = places_.find(std::string(name) + ending);
      if (found != places_.end()) return found->second;
    }
    return std::nullopt;
  }

  const std::string before_;
  std::unordered_map<std::string, size_t> places_;
};

// Which columns of a label file hold what, from 0.
struct LabelColumns {
  bool header = false;
  size_t name = 0, label = 0;
};

using Fields = std::vector<std::string_view>;

std::optional<size_t> FindNameColumn(const Fields& fields, const PictureNames& names) {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](auto field) { return names.Find(field); });
  if (found == fields.end()) return std::nullopt;
  return static_cast<size_t>(found - fields.begin());
}

// A column that is called so, else the only one besides the names.
size_t FindLabelColumn(const std::string& path, const Fields& fields, size_t name, bool header) {
  for (size_t i = 0; header && i < fields.size(); ++i) {
    const std::string title = ToLower(TrimField(fields[i]));
    if (i != name && (title == "label" || title == "class")) return i;
  }
  if (fields.size() == 2) return 1 - name;
  throw Error(
      "{}: has {} columns; expected the name of an image and its class, or a header that calls the "
      "column of the classes label or class",
      path, fields.size());
}

LabelColumns FindColumns(CsvReader reader, const PictureNames& names) {
  Fields first, second;
  if (!reader.Next(first)) throw Error("{}: is empty", reader.path());
  LabelColumns columns;
  auto name = FindNameColumn(first, names);
  if (!name) {
    columns.header = true;
    if (reader.Next(second)) name = FindNameColumn(second, names);
  }
  if (!name) {
    throw Error("{}: neither of its first two lines names an image of that folder, such as {}",
                reader.path(), QuoteField(second.empty() ? first[0] : second[0]));
  }
  columns.name = *name;
  columns.label = FindLabelColumn(reader.path(), first, *name, columns.header);
  return columns;
}

}  // namespace

std::string FindLabelFile(const std::string& folder) {
  if (ListFolder(folder).pictures.empty()) return "";
  if (const std::string usual = folder + "/labels.csv"; IsFile(usual)) return usual;
  const std::vector<std::string> names = CsvFilesIn(folder);
  if (names.size() > 1) {
    throw Error("{}: holds {} and {}; call the one with the classes of the images labels.csv",
                folder, names[0], names[1]);
  }
  if (names.size() == 1) return folder + "/" + names[0];
  const std::string beside = folder + ".csv";
  return IsFile(beside) ? beside : "";
}

ScannedFolder ScanLabelledFolder(const std::string& folder, const std::string& label_file) {
  const PathList files = ScanPictures(folder);
  const PictureNames names(folder, files);
  const std::string text = ReadFile(label_file, kMaxLabelFile);
  CsvReader reader(text, label_file, FindSeparator(text));
  const LabelColumns columns = FindColumns(reader, names);

  CsvLabels found({.task = Task::kClassification}, reader.decimal_comma());
  std::vector<int32_t> labels(files.size(), -1);
  Fields fields;
  if (columns.header) reader.Next(fields);
  while (reader.Next(fields)) {
    if (fields.size() <= std::max(columns.name, columns.label)) {
      throw Error("{}:{}: has no {}", label_file, reader.line(),
                  fields.size() <= columns.name ? "name of an image" : "class");
    }
    const std::string_view name = fields[columns.name];
    const auto place = names.Find(name);
    if (!place) {
      throw Error("{}:{}: there is no image {} in {}", label_file, reader.line(), QuoteField(name),
                  folder);
    }
    int32_t& label = labels[*place];
    const int32_t now = found.Find(reader, fields[columns.label]);
    if (label != -1 && label != now) {
      throw Error("{}:{}: image {} has two classes", label_file, reader.line(), QuoteField(name));
    }
    label = now;
  }
  if (const auto without = std::count(labels.begin(), labels.end(), -1); without > 0) {
    const auto first = std::find(labels.begin(), labels.end(), -1) - labels.begin();
    throw Error("{}: {} of {} images have no line, such as {}; add lines, or move them elsewhere",
                label_file, without, files.size(), files[static_cast<size_t>(first)]);
  }

  ScannedFolder scan;
  scan.classes = found.Finish(label_file, labels).classes;
  std::vector<size_t> order(files.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return labels[a] < labels[b]; });
  for (const size_t i : order) {
    scan.files.Add(files[i]);
    scan.labels.push_back(labels[i]);
  }
  return scan;
}

}  // namespace trireme
