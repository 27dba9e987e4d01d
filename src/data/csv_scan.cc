#include "data/csv_scan.h"

#include <algorithm>
#include <utility>

#include "data/csv_field.h"

namespace trireme {

CsvScan::CsvScan(CsvReader records, size_t columns, size_t most)
    : columns_(columns), most_(most), decimal_comma_(records.decimal_comma()) {
  std::vector<std::string_view> fields;
  while (records.Next(fields)) Add(fields);
}

void CsvScan::Add(const std::vector<std::string_view>& fields) {
  ++rows_;
  for (size_t i = 0; i < std::min(fields.size(), columns_.size()); ++i) {
    Column& column = columns_[i];
    const std::string_view field = TrimField(fields[i]);
    if (IsMissing(field)) {
      ++column.missing;
      continue;
    }
    const bool number = ParseField(field, decimal_comma_).has_value();
    ++(number ? column.numbers : column.texts);
    if (!number) column.dates += LooksLikeDate(field);
    if (column.fields.size() <= most_) column.fields.insert(field);
  }
}

bool CsvScan::Text(int column) const { return columns_[column].texts > columns_[column].numbers; }

bool CsvScan::Missing(int column) const { return columns_[column].missing > 0; }

bool CsvScan::AllMissing(int column) const { return columns_[column].missing == rows_; }

bool CsvScan::Dates(int column) const {
  return 2 * columns_[column].dates > columns_[column].texts;
}

bool CsvScan::Has(int column, std::string_view field) const {
  return columns_[column].fields.contains(field);
}

std::vector<std::string> CsvScan::Fields(int column) const {
  std::vector<std::string> fields(columns_[column].fields.begin(), columns_[column].fields.end());
  std::sort(fields.begin(), fields.end());
  return fields;
}

}  // namespace trireme
