#include "data/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "data/bytes.h"
#include "data/csv_reader.h"
#include "data/memory_source.h"

namespace trireme {
namespace {

using Fields = std::vector<std::string_view>;

constexpr int kNoColumn = -1;
constexpr size_t kMaxClasses = 65'536;

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Finite numbers only.
std::optional<float> ParseNumber(std::string_view text) {
  text = Trim(text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  const float narrow = static_cast<float>(value);
  if (!std::isfinite(narrow)) return std::nullopt;
  return narrow;
}

std::string Quote(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, 40)) shown += static_cast<unsigned char>(c) < ' ' ? '?' : c;
  return "'" + shown + (text.size() > 40 ? "...'" : "'");
}

// Which column is what, decided by the first record.
class Columns {
 public:
  Columns(const CsvReader& reader, const Fields& first, const CsvRequest& request,
          const SampleShape* shape)
      : reader_(reader), count_(static_cast<int>(first.size())) {
    id_ = Find(first, request.id, "data.id", shape != nullptr);
    label_ = Find(first, request.label, "data.label", shape != nullptr);
    if (label_ == kNoColumn) label_ = count_ - 1 == id_ ? count_ - 2 : count_ - 1;
    if (shape != nullptr) FitTo(*shape);
    if (label_ != kNoColumn && label_ == id_) {
      throw UsageError("{}: data.label and data.id name the same column {}", reader.path(),
                       id_ + 1);
    }
    for (int i = 0; i < count_; ++i) {
      if (i == label_ || i == id_) continue;
      values_.push_back(i);
      header_ = header_ || !ParseNumber(first[i]);
    }
    if (values_.empty()) {
      throw Error("{}:{}: {} columns; needed are numbers separated by commas, and a label",
                  reader.path(), reader.line(), count_);
    }
    names_.assign(first.begin(), first.end());
  }

  int count() const { return count_; }
  bool header() const { return header_; }
  int label() const { return label_; }
  const std::vector<int>& values() const { return values_; }

  std::string Name(int column) const {
    if (!header_) return fmt::format("column {}", column + 1);
    return fmt::format("column {} ({})", column + 1, Quote(names_[column]));
  }

 private:
  // By number or by name; nothing if the file lacks a name that is `optional`.
  int Find(const Fields& first, const std::string& wanted, const char* key, bool optional) {
    if (wanted.empty()) return kNoColumn;
    int number = 0;
    const char* const end = wanted.data() + wanted.size();
    const auto parsed = std::from_chars(wanted.data(), end, number);
    if (parsed.ec == std::errc() && parsed.ptr == end) {
      if (number >= 1 && number <= count_) return number - 1;
      if (optional) return kNoColumn;
      throw UsageError("{}: no column {} ({}), the file has {}", reader_.path(), number, key,
                       count_);
    }
    for (int i = 0; i < count_; ++i) {
      if (Trim(first[i]) != wanted) continue;
      header_ = true;
      named_.push_back(i);
      return i;
    }
    if (optional) return kNoColumn;
    throw UsageError("{}: no column {} ({}); the first line begins with {}", reader_.path(),
                     Quote(wanted), key, Quote(first[0]));
  }

  bool Named(int column) const {
    return std::find(named_.begin(), named_.end(), column) != named_.end();
  }

  // Decides which of label and id a file has, given that the rest are the values of a sample.
  // A column that was found by its name is there; otherwise a spare one is the label.
  void FitTo(const SampleShape& shape) {
    const int64_t spare = count_ - shape.size();
    const int64_t named = static_cast<int64_t>(named_.size());
    if (spare < named || spare > 2 || (spare == 2 && id_ == kNoColumn)) {
      throw Error("{}:{}: {} columns, but the model takes {} values, with or without label{}",
                  reader_.path(), reader_.line(), count_, shape.size(),
                  id_ == kNoColumn ? "" : " and id");
    }
    if (spare == 2) return;
    const bool keep_id = spare == 1 && Named(id_);
    const bool keep_label = spare == 1 && !keep_id;
    if (!keep_id) id_ = kNoColumn;
    if (!keep_label) label_ = kNoColumn;
  }

  const CsvReader& reader_;
  int count_;
  bool header_ = false;
  int id_ = kNoColumn;
  int label_ = kNoColumn;
  std::vector<int> named_;  // those found by their name
  std::vector<int> values_;
  std::vector<std::string> names_;
};

// Labels as they come: numbered by first appearance, or by the given classes.
class Labels {
 public:
  explicit Labels(std::span<const std::string> classes) : known_(!classes.empty()) {
    for (const std::string& name : classes) Number(name);
  }

  int32_t Find(const CsvReader& reader, std::string_view field) {
    const std::string_view text = Trim(field);
    if (text.empty()) throw Error("{}:{}: the label is empty", reader.path(), reader.line());
    const auto found = numbers_.find(text);
    if (found != numbers_.end()) return found->second;
    if (known_) {
      throw Error("{}:{}: label {} is none of the {} known classes ({}, ...)", reader.path(),
                  reader.line(), Quote(text), names_.size(), names_[0]);
    }
    if (names_.size() == kMaxClasses) {
      throw Error("{}:{}: more than {} different labels; data.label chooses the label's column",
                  reader.path(), reader.line(), kMaxClasses);
    }
    return Number(text);
  }

  // Sorts collected classes and renumbers `labels`.
  std::vector<std::string> Finish(const std::string& path, std::vector<int32_t>& labels) {
    if (known_) return {names_.begin(), names_.end()};
    if (names_.size() == 1) {
      throw Error("{}: every row has the label {}; there is nothing to tell apart (data.label)",
                  path, Quote(names_[0]));
    }
    std::vector<std::pair<double, int32_t>> order;  // by number; all 0 among texts
    for (size_t i = 0; i < names_.size(); ++i) order.emplace_back(0.0, static_cast<int32_t>(i));
    if (std::all_of(names_.begin(), names_.end(), [](auto n) { return ParseNumber(n); })) {
      for (auto& [value, index] : order) {
        value = *ParseNumber(names_[index]);
        if (value == std::floor(value)) continue;
        throw Error("{}: label {} is no whole number; Trireme learns classes (data.label)", path,
                    Quote(names_[index]));
      }
    }
    std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : names_[a.second] < names_[b.second];
    });
    std::vector<int32_t> place(names_.size());
    std::vector<std::string> classes;
    for (const auto& [value, index] : order) {
      place[index] = static_cast<int32_t>(classes.size());
      classes.emplace_back(names_[index]);
    }
    for (int32_t& label : labels) label = place[label];
    return classes;
  }

 private:
  int32_t Number(std::string_view name) {
    const auto number = static_cast<int32_t>(names_.size());
    numbers_.emplace(name, number);
    names_.push_back(name);
    return number;
  }

  bool known_;
  std::unordered_map<std::string_view, int32_t> numbers_;
  std::vector<std::string_view> names_;
};

void AppendRow(const CsvReader& reader, const Columns& columns, const Fields& fields,
               std::vector<float>& values) {
  if (static_cast<int>(fields.size()) != columns.count()) {
    throw Error("{}:{}: {} fields, but the first line has {}", reader.path(), reader.line(),
                fields.size(), columns.count());
  }
  for (const int i : columns.values()) {
    const std::optional<float> value = ParseNumber(fields[i]);
    if (!value) {
      throw Error("{}:{}: {}: {} is not a finite number", reader.path(), reader.line(),
                  columns.Name(i), Quote(fields[i]));
    }
    values.push_back(*value);
  }
}

CsvTable Read(const std::string& path, const CsvRequest& request, const SampleShape* shape) {
  std::vector<uint8_t> bytes = ReadBytes(path);
  CsvReader reader({reinterpret_cast<char*>(bytes.data()), bytes.size()}, path);
  Fields fields;
  if (!reader.Next(fields)) throw Error("{}: no rows, only blank lines", path);
  const Columns columns(reader, fields, request, shape);
  Labels labels(request.classes);
  std::vector<float> values;
  std::vector<int32_t> numbers;
  for (bool more = columns.header() ? reader.Next(fields) : true; more;
       more = reader.Next(fields)) {
    AppendRow(reader, columns, fields, values);
    numbers.push_back(columns.label() == kNoColumn ? -1
                                                   : labels.Find(reader, fields[columns.label()]));
  }
  if (numbers.empty()) throw Error("{}: a header, but no rows", path);
  CsvTable table{.labelled = columns.label() != kNoColumn};
  if (table.labelled) table.classes = labels.Finish(path, numbers);
  const SampleShape row{1, 1, static_cast<int>(columns.values().size())};
  table.rows = std::make_unique<FloatSource>(shape != nullptr ? *shape : row, std::move(values),
                                             std::move(numbers));
  return table;
}

}  // namespace

CsvTable ReadCsv(const std::string& path, const CsvRequest& request) {
  return Read(path, request, nullptr);
}

CsvTable ReadCsvRecords(const std::string& path, const CsvRequest& request,
                        const SampleShape& shape) {
  return Read(path, request, &shape);
}

}  // namespace trireme
