#include "data/csv_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "data/csv_field.h"

namespace trireme {
namespace {

std::vector<std::string> Trimmed(const std::vector<std::string_view>& fields) {
  std::vector<std::string> texts;
  for (const std::string_view field : fields) texts.emplace_back(TrimField(field));
  return texts;
}

template <typename T>
bool Has(const std::vector<T>& list, const T& wanted) {
  return std::find(list.begin(), list.end(), wanted) != list.end();
}

}  // namespace

CsvColumns::CsvColumns(const CsvReader& reader, const std::vector<std::string_view>& first,
                       const CsvRequest& request, const SampleShape* shape, const CsvScan* scan)
    : path_(reader.path()),
      line_(reader.line()),
      decimal_comma_(reader.decimal_comma()),
      first_(Trimmed(first)),
      count_(static_cast<int>(first.size())) {
  const bool by_name = Holds(request.columns);
  if (!by_name) TakeByPlace(request, shape, scan);
  // A header that holds none of the names: it tells what is missing.
  const bool other = !by_name && header_ && !request.columns.values.empty();
  if (by_name || other) TakeByName(request.columns, shape == nullptr);
}

void CsvColumns::TakeByPlace(const CsvRequest& request, const SampleShape* shape,
                             const CsvScan* scan) {
  const bool optional = shape != nullptr;
  FindIds(request.id, optional);
  label_ = Find(request.label, "data.label", optional);
  for (int i = count_ - 1; i >= 0 && label_ == kNone; --i) {
    if (!IsId(i)) label_ = i;
  }
  if (shape != nullptr) FitTo(shape->size(), request.codes);
  if (label_ != kNone && IsId(label_)) {
    throw UsageError("{}: data.label and data.id name the same column {}", path_, label_ + 1);
  }
  for (int i = 0; i < count_; ++i) {
    if (i != label_ && !IsId(i)) values_.push_back(i);
  }
  if (values_.empty()) {
    throw Error(
        "{}:{}: {} {}; expected values separated by commas, semicolons or tabs, and a label", path_,
        line_, count_, count_ == 1 ? "column" : "columns");
  }
  header_ = header_ || LooksLikeHeader(request.codes, scan);
}

bool CsvColumns::LooksLikeHeader(const ColumnCodes& codes, const CsvScan* scan) const {
  const bool scanned = scan != nullptr && scan->rows() > 0;
  const bool coded = codes.size() == values_.size();
  bool numbers = false, comes_again = false;
  for (size_t i = 0; i < values_.size(); ++i) {
    const int column = values_[i];
    const std::string& field = first_[size_t(column)];
    if (scanned ? scan->Text(column) : coded && codes[i].text()) {
      comes_again = comes_again || IsMissing(field) ||
                    (scanned ? scan->Has(column, field) : Has(codes[i].categories, field));
    } else if (!ParseField(field, decimal_comma_) && !((scanned || coded) && IsMissing(field))) {
      return true;
    } else {
      numbers = true;
    }
  }
  return !numbers && !comes_again;
}

int CsvColumns::Find(const std::string& wanted, const char* key, bool optional) {
  if (wanted.empty()) return kNone;
  const auto number = ParseNumber<int64_t>(wanted);
  if (number && *number >= 1 && *number <= count_) return static_cast<int>(*number) - 1;
  const auto found = std::find(first_.begin(), first_.end(), wanted);
  if (found != first_.end()) {
    header_ = true;
    named_.push_back(static_cast<int>(found - first_.begin()));
    return named_.back();
  }
  if (optional) return kNone;
  if (number)
    throw UsageError("{}: no column {} ({}); the file has {}", path_, wanted, key, count_);
  throw UsageError("{}: no column {} ({}); the first line has {}{}", path_, QuoteField(wanted), key,
                   QuoteFields(first_), DidYouMean(wanted, first_));
}

void CsvColumns::FindIds(const std::string& wanted, bool optional) {
  std::vector<std::string> parts = {wanted};
  if (std::find(first_.begin(), first_.end(), wanted) == first_.end()) parts = Split(wanted, ',');
  for (const std::string& part : parts) {
    const int id = Find(std::string(TrimField(part)), "data.id", optional);
    if (id != kNone && !IsId(id)) ids_.push_back(id);
  }
}

bool CsvColumns::IsId(int column) const { return Has(ids_, column); }

bool CsvColumns::FoundByName(int column) const { return Has(named_, column); }

void CsvColumns::FitTo(int64_t inputs, const ColumnCodes& codes) {
  const int64_t wanted = codes.empty() ? inputs : static_cast<int64_t>(codes.size());
  const int64_t spare = count_ - wanted;
  const auto ids = static_cast<int64_t>(ids_.size());
  const int64_t named_ids =
      std::count_if(ids_.begin(), ids_.end(), [&](int column) { return FoundByName(column); });
  const bool label_named = FoundByName(label_);
  if (spare == ids + 1) return;  // label and ids
  if (ids > 0 && spare == ids && named_ids == ids && !label_named) {
    label_ = kNone;
  } else if (spare == 1 && named_ids == 0) {
    ids_.clear();
  } else if (spare == 0 && named_ids == 0 && !label_named) {
    ids_.clear();
    label_ = kNone;
  } else {
    throw Error("{}:{}: {} columns, but the model takes {} values, with or without a label{}",
                path_, line_, count_, wanted, ids ? " and id" : "");
  }
}

bool CsvColumns::Holds(const ColumnNames& known) const {
  bool all = !known.values.empty();
  for (const std::string& name : known.values) {
    const bool here = std::find(first_.begin(), first_.end(), name) != first_.end();
    if (here && !ParseField(name)) return true;
    all = all && here;  // a name that is a number may be a value
  }
  return all;
}

void CsvColumns::TakeByName(const ColumnNames& known, bool needs_label) {
  header_ = true;
  values_.clear(), ids_.clear();
  label_ = kNone;
  std::vector<std::string> missing, unknown;
  const auto place = [&](const std::string& name) {
    const auto found = std::find(first_.begin(), first_.end(), name);
    return found == first_.end() ? kNone : static_cast<int>(found - first_.begin());
  };
  for (const std::string& name : known.values) {
    values_.push_back(place(name));
    if (values_.back() == kNone) missing.push_back(name);
  }
  for (const std::string& name : known.ids) ids_.push_back(place(name));
  label_ = place(known.label);
  if (label_ == kNone && needs_label) missing.push_back(known.label);
  for (int i = 0; i < count_; ++i) {
    if (i != label_ && !IsId(i) && !Has(values_, i)) unknown.push_back(first_[i]);
  }
  if (missing.empty() && unknown.empty()) return;
  throw Error("{}:{}: the columns differ from those of the training samples:{}{}{}", path_, line_,
              missing.empty() ? "" : " missing " + QuoteFields(missing),
              missing.empty() || unknown.empty() ? "" : ",",
              unknown.empty() ? "" : " unknown " + QuoteFields(unknown));
}

ColumnNames CsvColumns::names() const {
  if (!header_ || std::set(first_.begin(), first_.end()).size() < first_.size()) return {};
  if (!std::all_of(first_.begin(), first_.end(), [](const auto& name) { return IsUtf8(name); })) {
    return {};
  }
  ColumnNames names;
  for (const int column : values_) names.values.push_back(first_[column]);
  for (const int column : ids_) {
    if (column != kNone) names.ids.push_back(first_[column]);
  }
  if (label_ != kNone) names.label = first_[label_];
  return names;
}

std::string CsvColumns::Name(int column) const {
  if (!header_) return fmt::format("column {}", column + 1);
  return fmt::format("column {} ({})", column + 1, QuoteField(first_[column]));
}

std::string CsvColumns::Key(int column) const {
  const std::string& name = first_[column];
  const bool plain = header_ && !name.empty() && IsUtf8(name) && !ParseField(name) &&
                     name.find_first_of(" ,'\"\\$&|;<>()*?#~") == name.npos;
  return plain ? name : fmt::format("{}", column + 1);
}

}  // namespace trireme
