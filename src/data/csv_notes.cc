#include "data/csv_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "data/csv_field.h"

namespace trireme {
namespace {

constexpr size_t kFewRows = 10;  // they may be anything by chance

// Names that people and programs give to a column that numbers the rows.
bool IsNameOfId(std::string_view title) {
  const std::string name = ToLower(title);
  return name == "id" || name == "index" || name == "unnamed: 0";
}

// n, n + 1, n + 2, ...
bool CountsUp(std::span<const float> values, size_t column, size_t width) {
  const size_t rows = values.size() / width;
  for (size_t i = 1; i < rows; ++i) {
    if (values[i * width + column] != values[(i - 1) * width + column] + 1) return false;
  }
  return rows >= kFewRows;
}

// Whole numbers, none twice, whose label no other row has, while all other labels come again.
bool LooksLikeHeader(const std::vector<std::string>& first, std::span<const int32_t> labels) {
  if (labels.size() < kFewRows || std::set(first.begin(), first.end()).size() < first.size()) {
    return false;
  }
  for (const std::string& field : first) {
    const auto number = ParseField(field);
    if (!number || *number != std::floor(*number)) return false;
  }
  std::vector<int64_t> rows(size_t(*std::max_element(labels.begin(), labels.end())) + 1);
  for (const int32_t label : labels) ++rows[size_t(label)];
  return rows[size_t(labels[0])] == 1 && std::count(rows.begin(), rows.end(), 1) == 1;
}

}  // namespace

std::vector<std::string> NotesOnTable(const std::string& path, const CsvColumns& columns,
                                      const ColumnCodes& codes, std::span<const float> values,
                                      std::span<const int32_t> labels) {
  std::vector<std::string> notes;
  size_t input = 0;
  for (size_t i = 0; i < codes.size(); input += size_t(codes[i++].inputs())) {
    const int column = columns.values()[i];
    const bool counts = !codes[i].text() && CountsUp(values, input, size_t(InputsOf(codes)));
    if (!counts && !(columns.header() && IsNameOfId(columns.first()[size_t(column)]))) continue;
    notes.push_back(
        fmt::format("{}: {} {}, but is trained on; leave it out with --set data.id={}", path,
                    columns.Name(column),
                    counts ? "numbers the rows" : "has a name that suggests it numbers the rows",
                    columns.Key(column)));
  }
  if (!columns.header() && LooksLikeHeader(columns.first(), labels)) {
    const std::string& label = columns.first()[size_t(columns.label())];
    const float number = *ParseField(label);  // data.label may take it for that of a column
    const bool usable = number < 1 || number > float(columns.count());
    notes.push_back(fmt::format(
        "{}: the first line is read as a sample, but looks like column names; if it is, {}", path,
        usable ? "name the label's column: --set data.label=" + label
               : "give the columns names that are not numbers"));
  }
  return notes;
}

}  // namespace trireme
