#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "data/csv_reader.h"

namespace trireme {

// What the fields of every column are: numbers, texts, or missing. Borrows the texts.
class CsvScan {
 public:
  // Reads what is left of `records`; remembers up to `most` different fields of each column.
  CsvScan(CsvReader records, size_t columns, size_t most);

  void Add(const std::vector<std::string_view>& fields);

  int64_t rows() const { return rows_; }
  bool Text(int column) const;     // most fields are no numbers
  bool Missing(int column) const;  // some fields are missing
  bool AllMissing(int column) const;
  bool Dates(int column) const;  // most fields look like dates
  bool Has(int column, std::string_view field) const;
  // The different fields, sorted; more than `most`: there may be more.
  std::vector<std::string> Fields(int column) const;

 private:
  struct Column {
    int64_t numbers = 0, texts = 0, dates = 0, missing = 0;
    std::unordered_set<std::string_view> fields;
  };
  std::vector<Column> columns_;
  const size_t most_;
  const bool decimal_comma_;
  int64_t rows_ = 0;
};

}  // namespace trireme
