#include "data/csv_labels.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/label.h"
#include "base/text.h"
#include "data/csv_field.h"

namespace trireme {
namespace {

constexpr size_t kMaxClasses = 65'536;
constexpr size_t kFewClasses = 20;     // so many may have a row or two each
constexpr size_t kManyClasses = 1000;  // more must be asked for
constexpr char kChoose[] = "choose the label's column with data.label";

}  // namespace

void CheckLabelColumn(const CsvScan& scan, int label, const std::string& path,
                      const std::string& column, const CsvRequest& request) {
  if (scan.AllMissing(label)) {
    throw Error("{}: the label, {}: every field is missing; {}", path, column, kChoose);
  }
  if (request.task != Task::kClassification && scan.Text(label) && scan.Dates(label)) {
    throw Error(
        "{}: the label, {}, holds dates, such as {}; write a number instead (the year, the days "
        "since a date), or {}",
        path, column, QuoteField(scan.Fields(label)[0]), kChoose);
  }
}

CsvLabels::CsvLabels(const CsvRequest& request, bool decimal_comma)
    : task_(request.task),
      known_(!request.classes.empty()),
      learns_(request.learns()),
      decimal_comma_(decimal_comma) {
  for (const std::string& name : request.classes) Number(name);
}

int32_t CsvLabels::Find(const CsvReader& reader, std::string_view field) {
  const std::string_view text = TrimField(field);
  if (text.empty()) throw Error("{}:{}: the label is empty", reader.path(), reader.line());
  const auto found = numbers_.find(text);
  if (found != numbers_.end()) return found->second;
  if (!IsUtf8(text)) {  // what runs write down of it could not be found again
    throw Error("{}:{}: the label {} is not UTF-8 (perhaps Latin-1): save the file as UTF-8",
                reader.path(), reader.line(), QuoteField(text));
  }
  if (known_) {
    throw Error("{}:{}: label {} is not one of the {} known classes ({}, ...)", reader.path(),
                reader.line(), QuoteField(text), names_.size(), names_[0]);
  }
  if (task_ == Task::kRegression && !ValueOf(text)) {
    throw Error("{}:{}: the label {} is not a finite number{}", reader.path(), reader.line(),
                QuoteField(text), IsMissing(text) ? "; remove the row" : FieldHint(text));
  }
  const bool may_be_number = task_ != Task::kClassification && ValueOf(text);
  if (names_.size() >= kMaxClasses && !may_be_number) {
    throw Error("{}:{}: more than {} different labels; {}", reader.path(), reader.line(),
                kMaxClasses, kChoose);
  }
  return Number(text);
}

std::optional<float> CsvLabels::ValueOf(std::string_view name) const {
  return ParseField(name, decimal_comma_);
}

bool CsvLabels::AllNumbers() const {
  return std::all_of(names_.begin(), names_.end(), [&](auto name) { return ValueOf(name); });
}

bool CsvLabels::AreQuantities(const std::string& path, size_t rows) const {
  constexpr size_t kSome = 50, kFewEach = 20;
  size_t numbers = 0;
  bool fractions = false;
  std::string_view missing;
  for (const std::string_view name : names_) {
    if (const auto value = ValueOf(name)) {
      ++numbers;
      fractions = fractions || *value != std::floor(*value);
    } else if (IsMissing(name)) {
      missing = name;
    } else {
      return false;
    }
  }
  const bool few_rows_each = (numbers > kFewClasses && 2 * numbers > rows) ||
                             (numbers > kSome && rows < kFewEach * numbers) ||
                             numbers > kManyClasses;
  if (!fractions && !few_rows_each) return false;
  if (missing.empty()) return true;
  throw Error("{}: the labels are numbers, but some are missing ({}); remove these rows", path,
              QuoteField(missing));
}

void CsvLabels::RefuseClasses(const std::string& path, size_t rows) const {
  if (names_.size() > kFewClasses && 2 * names_.size() > rows) {
    throw Error("{}: {} different labels in {} rows, such as {}: {}; {}", path,
                FormatCount(int64_t(names_.size())), FormatCount(int64_t(rows)),
                QuoteField(names_[0]),
                AllNumbers() ? "this looks like a quantity, not like a class (data.task=regression)"
                             : "this looks like a name for each row, not like a class",
                kChoose);
  }
  if (names_.size() > kManyClasses && !task_) {
    throw Error(
        "{}: {} different labels in {} rows, such as {}; {}, or learn so many classes with --set "
        "data.task=classification",
        path, FormatCount(int64_t(names_.size())), FormatCount(int64_t(rows)),
        QuoteField(names_[0]), kChoose);
  }
}

CsvLabels::Found CsvLabels::Finish(const std::string& path, std::vector<int32_t>& labels) {
  if (known_) return {.classes = {names_.begin(), names_.end()}};
  if (learns_ && names_.size() == 1) {
    throw Error("{}: every row has the label {}, so there is nothing to learn; {}", path,
                QuoteField(names_[0]), kChoose);
  }
  if (task_ == Task::kRegression || (!task_ && AreQuantities(path, labels.size()))) {
    for (int32_t& label : labels) label = LabelOfNumber(*ValueOf(names_[size_t(label)]));
    return {.task = Task::kRegression};
  }
  RefuseClasses(path, labels.size());
  return {.classes = SortClasses(labels)};
}

std::vector<std::string> CsvLabels::SortClasses(std::vector<int32_t>& labels) const {
  const bool numbers = AllNumbers();
  std::vector<std::pair<double, int32_t>> order;  // by number; all 0 among texts
  for (size_t i = 0; i < names_.size(); ++i) {
    order.emplace_back(numbers ? *ValueOf(names_[i]) : 0.0, static_cast<int32_t>(i));
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

int32_t CsvLabels::Number(std::string_view name) {
  const auto number = static_cast<int32_t>(names_.size());
  numbers_.emplace(name, number);
  names_.push_back(name);
  return number;
}

}  // namespace trireme
