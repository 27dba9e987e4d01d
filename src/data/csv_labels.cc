#include "data/csv_labels.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "data/csv_field.h"

namespace trireme {
namespace {

constexpr size_t kMaxClasses = 65'536;
constexpr size_t kFewClasses = 20;  // so many may have a row or two each

}  // namespace

CsvLabels::CsvLabels(std::span<const std::string> classes) : known_(!classes.empty()) {
  for (const std::string& name : classes) Number(name);
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
  if (names_.size() == kMaxClasses) {
    throw Error("{}:{}: more than {} different labels; choose the label's column with data.label",
                reader.path(), reader.line(), kMaxClasses);
  }
  return Number(text);
}

bool CsvLabels::AreNumbers(const std::string& path) const {
  if (!std::all_of(names_.begin(), names_.end(), [](auto name) { return ParseField(name); })) {
    return false;
  }
  for (const std::string_view name : names_) {
    const double value = *ParseField(name);
    if (value == std::floor(value)) continue;
    throw Error(
        "{}: label {} is not a whole number, but Trireme learns classes; choose the label's column "
        "with data.label",
        path, QuoteField(name));
  }
  return true;
}

std::vector<std::string> CsvLabels::Finish(const std::string& path, std::vector<int32_t>& labels) {
  if (known_) return {names_.begin(), names_.end()};
  if (names_.size() == 1) {
    throw Error(
        "{}: every row has the label {}, so there is nothing to learn; choose the label's column "
        "with data.label",
        path, QuoteField(names_[0]));
  }
  const bool numbers = AreNumbers(path);
  if (names_.size() > kFewClasses && 2 * names_.size() > labels.size()) {
    throw Error(
        "{}: {} different labels in {} rows, such as {}: {}; choose the label's column with "
        "data.label",
        path, FormatCount(int64_t(names_.size())), FormatCount(int64_t(labels.size())),
        QuoteField(names_[0]),
        numbers ? "this looks like a quantity, but Trireme learns classes"
                : "this looks like a name for each row, not like a class");
  }
  std::vector<std::pair<double, int32_t>> order;  // by number; all 0 among texts
  for (size_t i = 0; i < names_.size(); ++i) {
    order.emplace_back(numbers ? *ParseField(names_[i]) : 0.0, static_cast<int32_t>(i));
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
