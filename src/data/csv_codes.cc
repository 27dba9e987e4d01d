#include "data/csv_codes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/csv_field.h"

namespace trireme {
namespace {

constexpr float kNothing = std::numeric_limits<float>::quiet_NaN();

std::string LeaveOut(const CsvColumns& columns, int column) {
  return fmt::format("leave it out with --set data.id={}", columns.Key(column));
}

std::vector<std::string> Categories(const std::string& path, const CsvColumns& columns, int column,
                                    const CsvScan& scan, int most) {
  std::vector<std::string> texts = scan.Fields(column);
  if (scan.Dates(column)) {
    throw Error(
        "{}: {} holds dates, such as {}; write numbers instead (the year, the day of the year), or "
        "{}",
        path, columns.Name(column), QuoteField(texts[0]), LeaveOut(columns, column));
  }
  if (most == 0) {
    throw Error("{}: {} is text, such as {}, and data.categories is 0; {}", path,
                columns.Name(column), QuoteField(texts[0]), LeaveOut(columns, column));
  }
  if (static_cast<int64_t>(texts.size()) > most) {
    throw Error(
        "{}: {} holds more than {} different texts, such as {}; {}, or allow more with --set "
        "data.categories=N",
        path, columns.Name(column), most, QuoteField(texts[0]), LeaveOut(columns, column));
  }
  for (const std::string& text : texts) {
    if (IsUtf8(text)) continue;  // what runs write down of it could not be found again
    throw Error("{}: {}: {} is not UTF-8 (perhaps Latin-1): save the file as UTF-8", path,
                columns.Name(column), QuoteField(text));
  }
  return texts;
}

}  // namespace

ColumnCodes LearnCodes(const CsvReader& reader, const CsvColumns& columns, const CsvScan& scan,
                       const CsvRequest& request) {
  ColumnCodes codes;
  for (const int column : columns.values()) {
    ColumnCode& code = codes.emplace_back();
    if (scan.AllMissing(column)) {
      throw Error("{}: {}: every field is missing; {}", reader.path(), columns.Name(column),
                  LeaveOut(columns, column));
    }
    if (scan.Text(column)) {
      code.categories = Categories(reader.path(), columns, column, scan, request.categories);
    } else {
      code.flagged = request.fill_in && scan.Missing(column);
    }
    if (request.fill_in) code.fill = 0;  // until the median is known
  }
  return codes;
}

CsvEncoder::CsvEncoder(const CsvColumns& columns, ColumnCodes codes, bool learning)
    : columns_(columns), codes_(std::move(codes)), learning_(learning) {
  codes_.resize(columns.values().size());
  tallies_.resize(codes_.size());
  for (const ColumnCode& code : codes_) {
    auto& numbers = categories_.emplace_back();
    for (const std::string& name : code.categories) {
      numbers.emplace(name, static_cast<int>(numbers.size()));
    }
  }
}

void CsvEncoder::Append(const CsvReader& reader, const std::vector<std::string_view>& fields) {
  if (static_cast<int>(fields.size()) != columns_.count()) {
    throw Error("{}:{}: {} fields, but the first line has {}", reader.path(), reader.line(),
                fields.size(), columns_.count());
  }
  for (size_t i = 0; i < codes_.size(); ++i) {
    const int column = columns_.values()[i];
    const std::string_view field = TrimField(fields[column]);
    const bool missing = IsMissing(field);
    if (missing && !codes_[i].fill) {
      throw Error("{}:{}: {}: {} is not a finite number{}", reader.path(), reader.line(),
                  columns_.Name(column), QuoteField(field),
                  learning_ ? "; data.missing=median fills in such fields" : "");
    }
    tallies_[i].missing += missing;
    if (codes_[i].text()) {
      AppendText(static_cast<int>(i), missing ? std::string_view() : field);
    } else if (missing) {
      values_.push_back(learning_ ? kNothing : *codes_[i].fill);
    } else {
      AppendNumber(reader, static_cast<int>(i), field);
    }
    if (codes_[i].flagged) values_.push_back(missing);
  }
}

void CsvEncoder::AppendText(int value, std::string_view field) {
  const size_t begin = values_.size();
  values_.resize(begin + codes_[value].categories.size(), 0);
  const auto found = categories_[value].find(field);
  if (found != categories_[value].end()) {
    values_[begin + found->second] = 1;
  } else if (!field.empty() && tallies_[value].unknown++ == 0) {
    tallies_[value].example = field;
  }
}

void CsvEncoder::AppendNumber(const CsvReader& reader, int value, std::string_view field) {
  const std::optional<float> number = ParseField(field, reader.decimal_comma());
  if (!number) {
    throw Error("{}:{}: {}: {} is not a finite number{}", reader.path(), reader.line(),
                columns_.Name(columns_.values()[value]), QuoteField(field), FieldHint(field));
  }
  values_.push_back(*number);
}

std::vector<float> CsvEncoder::Finish() {
  size_t input = 0;
  for (ColumnCode& code : codes_) {
    if (learning_ && code.fill && !code.text()) FillIn(input, code);
    input += code.inputs();
  }
  return std::move(values_);
}

// With the median of the numbers that are there.
void CsvEncoder::FillIn(size_t input, ColumnCode& code) {
  const auto width = static_cast<size_t>(inputs());
  std::vector<float> known;
  for (size_t i = input; i < values_.size(); i += width) {
    if (!std::isnan(values_[i])) known.push_back(values_[i]);
  }
  const auto middle = known.begin() + known.size() / 2;
  std::nth_element(known.begin(), middle, known.end());
  float median = *middle;
  if (known.size() % 2 == 0) {
    median = std::midpoint(median, *std::max_element(known.begin(), middle));
  }
  code.fill = median;
  for (size_t i = input; i < values_.size(); i += width) {
    if (std::isnan(values_[i])) values_[i] = median;
  }
}

std::vector<std::string> CsvEncoder::Notes(const std::string& path) const {
  std::vector<std::string> notes;
  int64_t missing = 0;
  for (size_t i = 0; i < codes_.size(); ++i) {
    const Tally& tally = tallies_[i];
    missing += tally.missing;
    if (tally.unknown == 0) continue;
    notes.push_back(
        fmt::format("{}: {}: {} not in the training file, such as {}, and {} as missing", path,
                    columns_.Name(columns_.values()[i]), Counted(tally.unknown, "text"),
                    QuoteField(tally.example), tally.unknown == 1 ? "counts" : "count"));
  }
  if (missing > 0) {
    notes.push_back(
        fmt::format("{}: {} missing; numbers are filled in with the median of their column in the "
                    "training file",
                    path, Counted(missing, "field")));
  }
  return notes;
}

std::string CsvEncoder::Summary() const {
  std::vector<std::string> parts;
  for (size_t i = 0; i < codes_.size(); ++i) {
    if (!codes_[i].text()) continue;
    parts.push_back(
        fmt::format("{}: {}", columns_.Name(columns_.values()[i]), codes_[i].categories.size()));
  }
  if (parts.empty()) return "";
  return fmt::format("columns of text become one input for each of their texts: {}",
                     fmt::join(parts, ", "));
}

}  // namespace trireme
