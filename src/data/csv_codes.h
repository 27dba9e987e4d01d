#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/column_codes.h"
#include "data/csv_columns.h"
#include "data/csv_reader.h"
#include "data/csv_scan.h"

namespace trireme {

// How the columns of a training file become inputs; refuses what cannot be learnt from. The numbers
// that stand for missing ones come once all are read (CsvEncoder::Finish).
ColumnCodes LearnCodes(const CsvReader& reader, const CsvColumns& columns, const CsvScan& scan,
                       const CsvRequest& request);

// Turns records into inputs by the codes of their columns.
class CsvEncoder {
 public:
  // `codes` of every value column, or empty; `learning`: medians are found at the end.
  CsvEncoder(const CsvColumns& columns, ColumnCodes codes, bool learning);

  void Append(const CsvReader& reader, const std::vector<std::string_view>& fields);

  // What was appended; missing numbers of a file that is learnt from are filled in.
  std::vector<float> Finish();

  int inputs() const { return static_cast<int>(InputsOf(codes_)); }
  const ColumnCodes& codes() const { return codes_; }
  // Which fields are not what training saw, a sentence each.
  std::vector<std::string> Notes(const std::string& path) const;
  std::string Summary() const;  // of the columns of text, for people; empty: there are none

 private:
  void AppendText(int value, std::string_view field);
  void AppendNumber(const CsvReader& reader, int value, std::string_view field);
  void FillIn(size_t input, ColumnCode& code);

  const CsvColumns& columns_;
  ColumnCodes codes_;
  const bool learning_;
  std::vector<std::unordered_map<std::string_view, int>> categories_;  // of each value column
  std::vector<float> values_;
  struct Tally {
    int64_t missing = 0, unknown = 0;
    std::string example;  // of the unknown
  };
  std::vector<Tally> tallies_;
};

}  // namespace trireme
