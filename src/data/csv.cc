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
  const bool labelled = columns.label() != CsvColumns::kNone;
  if (scan && labelled) {
    CheckLabelColumn(*scan, columns.label(), path, columns.Name(columns.label()), request);
  }
  CsvLabels labels(request, reader.decimal_comma());
  std::vector<int32_t> numbers;
  for (bool more = columns.header() ? reader.Next(fields) : true; more;
       more = reader.Next(fields)) {
    encoder.Append(reader, fields);
    numbers.push_back(labelled ? labels.Find(reader, fields[columns.label()]) : -1);
  }
  if (numbers.empty()) throw Error("{}: a header, but no rows", path);
  std::vector<float> values = encoder.Finish();
  CsvTable table{.columns = columns.names(), .codes = encoder.codes(), .labelled = labelled};
  if (labelled) {
    CsvLabels::Found found = labels.Finish(path, numbers);
    table.task = found.task;
    table.classes = std::move(found.classes);
  }
  if (request.learns()) {
    std::span<const int32_t> classes = numbers;
    if (table.task == Task::kRegression) classes = {};
    table.notes = NotesOnTable(path, columns, table.codes, values, classes);
  } else if (columns.header() && request.columns.values.empty()) {
    table.notes.push_back(
        fmt::format("{}: columns are matched by position, because the names of the training "
                    "columns are not known",
                    path));
  }
  for (std::string& note : encoder.Notes(path)) table.notes.push_back(std::move(note));
  table.summary = encoder.Summary();
  if (table.task == Task::kRegression && !request.task) {
    table.summary += fmt::format(
        "{}{} holds numbers and is predicted as a number (--set data.task=classification learns a "
        "class for each)",
        table.summary.empty() ? "" : "; ", columns.Name(columns.label()));
  }
  const SampleShape row{1, 1, encoder.inputs()};
  table.rows = std::make_unique<FloatSource>(shape != nullptr ? *shape : row, std::move(values),
                                             std::move(numbers));
  return table;
}

}  // namespace

namespace {

std::optional<Task> TaskOf(const DataOptions& options, const KnownData& known) {
  if (known.task) return known.task;
  for (const Task task : {Task::kClassification, Task::kRegression}) {
    if (options.task == NameOf(task)) return task;
  }
  return std::nullopt;
}

}  // namespace

CsvRequest MakeCsvRequest(const DataOptions& options, const KnownData& known) {
  return {.label = options.label,
          .id = options.id,
          .classes = known.classes,
          .columns = known.columns,
          .codes = known.codes,
          .task = TaskOf(options, known),
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
