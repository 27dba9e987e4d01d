#include "data/csv_reader.h"

#include <utility>

#include "base/error.h"
#include "data/csv_field.h"

namespace trireme {

CsvReader::CsvReader(std::string_view text, std::string path, char separator)
    : at_(text.data()),
      end_(text.data() + text.size()),
      path_(std::move(path)),
      separator_(separator),
      unquoted_(std::make_shared<std::deque<std::string>>()) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff") ||
      (text.size() > 1 && (text[0] == '\0') != (text[1] == '\0'))) {
    throw Error("{}: this file is UTF-16: save it as UTF-8", path_);
  }
  if (text.starts_with("\xef\xbb\xbf")) at_ += 3;
}

bool CsvReader::Next(std::vector<std::string_view>& fields) {
  fields.clear();
  while (at_ != end_ && AtLineEnd()) SkipLineEnd();
  if (at_ == end_) return false;
  record_line_ = line_;
  fields.push_back(ReadField());
  while (at_ != end_ && *at_ == separator_) {
    ++at_;
    fields.push_back(ReadField());
  }
  SkipLineEnd();
  return true;
}

std::string_view CsvReader::ReadField() {
  if (at_ != end_ && *at_ == '"') return ReadQuoted();
  const char* const begin = at_;
  while (!AtLineEnd() && *at_ != separator_) ++at_;
  return {begin, static_cast<size_t>(at_ - begin)};
}

std::string_view CsvReader::ReadQuoted() {
  const int64_t opened = line_;
  const char* const begin = ++at_;
  bool doubled = false;
  while (true) {
    if (at_ == end_) throw Error("{}:{}: a quoted field is never closed", path_, opened);
    if (*at_ == '"') {
      ++at_;
      if (at_ == end_ || *at_ != '"') break;
      doubled = true;
    }
    if (*at_ == '\n') ++line_;
    ++at_;
  }
  if (!AtLineEnd() && *at_ != separator_) {
    throw Error("{}:{}: text after a closing quote; double the quotes inside a quoted field", path_,
                line_);
  }
  const std::string_view field(begin, static_cast<size_t>(at_ - 1 - begin));
  if (!doubled) return field;
  std::string& text = unquoted_->emplace_back();
  for (size_t i = 0; i < field.size(); ++i) {
    text += field[i];
    if (field[i] == '"') ++i;
  }
  return text;
}

void CsvReader::SkipLineEnd() {
  if (at_ == end_) return;
  const char first = *at_++;
  if (first == '\r' && at_ != end_ && *at_ == '\n') ++at_;
  ++line_;
}

namespace {

struct Fit {
  int64_t numbers = -1;  // after the first record; -1: records differ, or have one field
  size_t width = 0;      // of the first record
};

Fit TrySeparator(std::string_view text, char separator) {
  constexpr int kRecords = 20;
  Fit fit;
  int64_t numbers = 0;
  try {
    CsvReader reader(text, "", separator);
    std::vector<std::string_view> fields;
    for (int i = 0; i < kRecords && reader.Next(fields); ++i) {
      if (i == 0) fit.width = fields.size();
      if (fields.size() != fit.width) return fit;
      if (i == 0) continue;
      for (const std::string_view field : fields) {
        numbers += ParseField(field, reader.decimal_comma()).has_value();
      }
    }
  } catch (const Error&) {  // told once the separator is known
    return fit;
  }
  if (fit.width > 1) fit.numbers = numbers;
  return fit;
}

}  // namespace

char FindSeparator(std::string_view text) {
  char best = ',';
  Fit most = TrySeparator(text, best);
  for (const char separator : {';', '\t'}) {
    const Fit fit = TrySeparator(text, separator);
    const bool none = fit.numbers < 0 && most.numbers < 0;
    if (none ? fit.width <= most.width : fit.numbers <= most.numbers) continue;
    best = separator;
    most = fit;
  }
  return best;
}

}  // namespace trireme
