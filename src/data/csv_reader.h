#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// Cuts a text into records of fields after RFC 4180: quoted fields may hold separators, newlines
// and doubled quotes. Lines may end in LF, CRLF or CR; a byte-order mark and blank lines are
// skipped. A copy goes on by itself.
class CsvReader {
 public:
  // The views that Next returns live as long as the text and any copy of the reader.
  CsvReader(std::string_view text, std::string path, char separator = ',');

  // False at the end.
  bool Next(std::vector<std::string_view>& fields);

  int64_t line() const { return record_line_; }  // where the last record began, from 1
  const std::string& path() const { return path_; }
  // Whether 1,5 is a number: where commas do not separate fields.
  bool decimal_comma() const { return separator_ != ','; }

 private:
  std::string_view ReadField();
  std::string_view ReadQuoted();
  bool AtLineEnd() const { return at_ == end_ || *at_ == '\n' || *at_ == '\r'; }
  void SkipLineEnd();

  const char* at_;
  const char* end_;
  std::string path_;
  char separator_;
  int64_t line_ = 1;
  int64_t record_line_ = 0;
  std::shared_ptr<std::deque<std::string>> unquoted_;  // fields that held doubled quotes
};

// Comma, semicolon or tab: what cuts the first records into equally many fields, the most of them
// numbers.
char FindSeparator(std::string_view text);

}  // namespace trireme
