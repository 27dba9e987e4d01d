#include "data/csv.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "data/bytes.h"
#include "data/csv_columns.h"
#include "data/csv_field.h"
#include "data/csv_labels.h"
#include "data/csv_notes.h"
#include "data/csv_reader.h"
#include "data/memory_source.h"

namespace trireme {
namespace {

using Fields = std::vector<std::string_view>;

void AppendRow(const CsvReader& reader, const CsvColumns& columns, const Fields& fields,
               std::vector<float>& values) {
  if (static_cast<int>(fields.size()) != columns.count()) {
    throw Error("{}:{}: {} fields, but the first line has {}", reader.path(), reader.line(),
                fields.size(), columns.count());
  }
  for (const int i : columns.values()) {
    const std::optional<float> value = ParseField(fields[i]);
    if (!value) {
      throw Error("{}:{}: {}: {} is not a finite number{}", reader.path(), reader.line(),
                  columns.Name(i), QuoteField(fields[i]), FieldHint(fields[i]));
    }
    values.push_back(*value);
  }
}

CsvTable Read(const std::string& path, const CsvRequest& request, const SampleShape* shape) {
  std::vector<uint8_t> bytes = ReadBytes(path);
  CsvReader reader({reinterpret_cast<char*>(bytes.data()), bytes.size()}, path);
  Fields fields;
  if (!reader.Next(fields)) throw Error("{}: no rows, only blank lines", path);
  const CsvColumns columns(reader, fields, request, shape);
  CsvLabels labels(request.classes);
  std::vector<float> values;
  std::vector<int32_t> numbers;
  for (bool more = columns.header() ? reader.Next(fields) : true; more;
       more = reader.Next(fields)) {
    AppendRow(reader, columns, fields, values);
    numbers.push_back(
        columns.label() == CsvColumns::kNone ? -1 : labels.Find(reader, fields[columns.label()]));
  }
  if (numbers.empty()) throw Error("{}: a header, but no rows", path);
  CsvTable table{.columns = columns.names(), .labelled = columns.label() != CsvColumns::kNone};
  if (table.labelled) table.classes = labels.Finish(path, numbers);
  if (request.classes.empty()) {
    table.notes = NotesOnTable(path, columns, values, numbers, table.classes);
  } else if (columns.header() && request.columns.values.empty()) {
    table.notes.push_back(
        fmt::format("{}: columns are matched by position, because the names of the training "
                    "columns are not known",
                    path));
  }
  const SampleShape row{1, 1, static_cast<int>(columns.values().size())};
  table.rows = std::make_unique<FloatSource>(shape != nullptr ? *shape : row, std::move(values),
                                             std::move(numbers));
  return table;
}

}  // namespace

CsvTable ReadCsv(const std::string& path, const CsvRequest& request) {
  return Read(path, request, nullptr);
}

CsvTable ReadCsvRecords(const std::string& path, const CsvRequest& request,
                        const SampleShape& shape) {
  return Read(path, request, &shape);
}

}  // namespace trireme
