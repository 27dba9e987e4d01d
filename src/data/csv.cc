#include "data/csv.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "data/bytes.h"
#include "data/csv_codes.h"
#include "data/csv_columns.h"
#include "data/csv_labels.h"
#include "data/csv_notes.h"
#include "data/csv_reader.h"
#include "data/csv_scan.h"
#include "data/memory_source.h"

namespace trireme {
namespace {

using Fields = std::vector<std::string_view>;

CsvTable Read(const std::string& path, const CsvRequest& request, const SampleShape* shape) {
  const std::vector<uint8_t> bytes = ReadBytes(path);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  CsvReader reader(text, path, FindSeparator(text));
  Fields fields;
  if (!reader.Next(fields)) throw Error("{}: no rows, only blank lines", path);
  std::optional<CsvScan> scan;
  if (request.learns()) scan.emplace(reader, fields.size(), size_t(request.categories));
  const CsvColumns columns(reader, fields, request, shape, scan ? &*scan : nullptr);
  if (scan && !columns.header()) scan->Add(fields);
  if (scan && scan->rows() == 0) throw Error("{}: a header, but no rows", path);
  CsvEncoder encoder(columns, scan ? LearnCodes(reader, columns, *scan, request) : request.codes,
                     scan.has_value());
  CsvLabels labels(request.classes);
  std::vector<int32_t> numbers;
  for (bool more = columns.header() ? reader.Next(fields) : true; more;
       more = reader.Next(fields)) {
    encoder.Append(reader, fields);
    numbers.push_back(
        columns.label() == CsvColumns::kNone ? -1 : labels.Find(reader, fields[columns.label()]));
  }
  if (numbers.empty()) throw Error("{}: a header, but no rows", path);
  std::vector<float> values = encoder.Finish();
  CsvTable table{.columns = columns.names(),
                 .codes = encoder.codes(),
                 .labelled = columns.label() != CsvColumns::kNone};
  if (table.labelled) table.classes = labels.Finish(path, numbers);
  if (request.classes.empty()) {
    table.notes = NotesOnTable(path, columns, table.codes, values, numbers, table.classes);
  } else if (columns.header() && request.columns.values.empty()) {
    table.notes.push_back(
        fmt::format("{}: columns are matched by position, because the names of the training "
                    "columns are not known",
                    path));
  }
  for (std::string& note : encoder.Notes(path)) table.notes.push_back(std::move(note));
  table.summary = encoder.Summary();
  const SampleShape row{1, 1, encoder.inputs()};
  table.rows = std::make_unique<FloatSource>(shape != nullptr ? *shape : row, std::move(values),
                                             std::move(numbers));
  return table;
}

}  // namespace

CsvRequest MakeCsvRequest(const DataOptions& options, const KnownData& known) {
  return {.label = options.label,
          .id = options.id,
          .classes = known.classes,
          .columns = known.columns,
          .codes = known.codes,
          .categories = options.categories,
          .fill_in = options.missing == "median"};
}

CsvTable ReadCsv(const std::string& path, const CsvRequest& request) {
  return Read(path, request, nullptr);
}

CsvTable ReadCsvRecords(const std::string& path, const CsvRequest& request,
                        const SampleShape& shape) {
  return Read(path, request, &shape);
}

}  // namespace trireme
