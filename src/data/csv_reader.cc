#include "data/csv_reader.h"

#include <utility>

#include "base/error.h"

namespace trireme {

CsvReader::CsvReader(std::span<char> text, std::string path)
    : at_(text.data()), end_(text.data() + text.size()), path_(std::move(path)) {
  const std::string_view whole(text.data(), text.size());
  if (whole.starts_with("\xff\xfe") || whole.starts_with("\xfe\xff") ||
      (whole.size() > 1 && (whole[0] == '\0') != (whole[1] == '\0'))) {
    throw Error("{}: this file is UTF-16: save it as UTF-8", path_);
  }
  if (whole.starts_with("\xef\xbb\xbf")) at_ += 3;
}

bool CsvReader::Next(std::vector<std::string_view>& fields) {
  fields.clear();
  while (at_ != end_ && AtLineEnd()) SkipLineEnd();
  if (at_ == end_) return false;
  record_line_ = line_;
  fields.push_back(ReadField());
  while (at_ != end_ && *at_ == ',') {
    ++at_;
    fields.push_back(ReadField());
  }
  SkipLineEnd();
  return true;
}

std::string_view CsvReader::ReadField() {
  if (at_ != end_ && *at_ == '"') return ReadQuoted();
  char* const begin = at_;
  while (!AtLineEnd() && *at_ != ',') ++at_;
  return {begin, static_cast<size_t>(at_ - begin)};
}

std::string_view CsvReader::ReadQuoted() {
  const int64_t opened = line_;
  char* const begin = ++at_;
  char* out = begin;
  while (true) {
    if (at_ == end_) throw Error("{}:{}: a quoted field is never closed", path_, opened);
    if (*at_ == '"') {
      ++at_;
      if (at_ == end_ || *at_ != '"') break;
    }
    if (*at_ == '\n') ++line_;
    *out++ = *at_++;
  }
  if (!AtLineEnd() && *at_ != ',') {
    throw Error("{}:{}: text after a closing quote; double the quotes inside a quoted field", path_,
                line_);
  }
  return {begin, static_cast<size_t>(out - begin)};
}

void CsvReader::SkipLineEnd() {
  if (at_ == end_) return;
  const char first = *at_++;
  if (first == '\r' && at_ != end_ && *at_ == '\n') ++at_;
  ++line_;
}

}  // namespace trireme
