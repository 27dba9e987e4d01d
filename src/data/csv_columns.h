#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "data/csv.h"
#include "data/csv_reader.h"
#include "data/csv_scan.h"

namespace trireme {

// Which column of a csv file is what, decided by its first record.
class CsvColumns {
 public:
  static constexpr int kNone = -1;

  // `shape`: of a model that takes the rows, which may lack label and ids; null: a table to learn
  // from. `scan`: of all other records, where codes are to be learnt.
  CsvColumns(const CsvReader& reader, const std::vector<std::string_view>& first,
             const CsvRequest& request, const SampleShape* shape, const CsvScan* scan = nullptr);

  int count() const { return count_; }
  const std::vector<std::string>& first() const { return first_; }  // the record, trimmed
  bool header() const { return header_; }                     // whether the first record is one
  int label() const { return label_; }                        // kNone: there is none
  const std::vector<int>& values() const { return values_; }  // in the order of the model
  ColumnNames names() const;  // empty without header, or where it cannot be told by them

  std::string Name(int column) const;  // for messages
  std::string Key(int column) const;   // as data.id takes it

 private:
  // By number or by name; nothing if the file lacks what is `optional`.
  int Find(const std::string& wanted, const char* key, bool optional);
  void FindIds(const std::string& wanted, bool optional);
  bool IsId(int column) const;
  bool FoundByName(int column) const;

  // Whether the first record holds names of `known`.
  bool Holds(const ColumnNames& known) const;
  void TakeByName(const ColumnNames& known, bool needs_label);
  void TakeByPlace(const CsvRequest& request, const SampleShape* shape, const CsvScan* scan);
  void FitTo(int64_t inputs, const ColumnCodes& codes);
  // Whether the first record is one of names, as far as its values tell.
  bool LooksLikeHeader(const ColumnCodes& codes, const CsvScan* scan) const;

  const std::string path_;
  const int64_t line_;
  const bool decimal_comma_;
  const std::vector<std::string> first_;
  const int count_;
  bool header_ = false;
  int label_ = kNone;
  std::vector<int> ids_;
  std::vector<int> named_;  // those found by their name
  std::vector<int> values_;
};

}  // namespace trireme
