#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// Cuts a text into records of fields after RFC 4180: quoted fields may hold commas, newlines and
// doubled quotes. Lines may end in LF, CRLF or CR; a byte-order mark and blank lines are skipped.
class CsvReader {
 public:
  // Quoted fields are unquoted in place; the views that Next returns live as long as the text.
  CsvReader(std::span<char> text, std::string path);

  // False at the end.
  bool Next(std::vector<std::string_view>& fields);

  int64_t line() const { return record_line_; }  // where the last record began, from 1
  const std::string& path() const { return path_; }

 private:
  std::string_view ReadField();
  std::string_view ReadQuoted();
  bool AtLineEnd() const { return at_ == end_ || *at_ == '\n' || *at_ == '\r'; }
  void SkipLineEnd();

  char* at_;
  char* end_;
  std::string path_;
  int64_t line_ = 1;
  int64_t record_line_ = 0;
};

}  // namespace trireme
