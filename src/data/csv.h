#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/column_codes.h"
#include "data/options.h"
#include "data/sample.h"
#include "data/source.h"
#include "data/task.h"

namespace trireme {

// How a csv file is to be understood.
struct CsvRequest {
  std::string label;  // column by name or number from 1; empty: the last
  std::string id;     // columns to leave out, likewise, with commas between; empty: none
  // If not empty: the labels' names in order, and others are refused. Else they are collected, if
  // they are no numbers to predict.
  std::span<const std::string> classes = {};
  // If not empty: a file with a header must have these columns, in any order; one without has them
  // in this order.
  ColumnNames columns = {};
  // If not empty: how columns become inputs. Else that is learnt, where the classes are, too.
  ColumnCodes codes = {};
  std::optional<Task> task = {};  // none: as the labels are
  int categories = 0;    // different texts that a column may hold; 0: columns of text are refused
  bool fill_in = false;  // missing fields, instead of refusing them

  bool learns() const { return classes.empty() && codes.empty(); }
};

// As the options say, of a table with these classes and columns, if they are known.
CsvRequest MakeCsvRequest(const DataOptions& options, const KnownData& known);

struct CsvTable {
  std::unique_ptr<Source> rows;
  Task task = Task::kClassification;
  std::vector<std::string> classes;  // numbers in their order, else texts in theirs
  ColumnNames columns;
  ColumnCodes codes;
  bool labelled = true;
  std::string summary;             // of how its columns are understood; empty: as they are
  std::vector<std::string> notes;  // what may be wrong with it, a sentence each
};

// A table to learn from: numbers, texts, and a label. Fields are separated by commas, semicolons or
// tabs. The first line is a header if it holds no number where a column has numbers, or if a column
// is asked for by name; where all columns are text, if none of its fields comes again.
CsvTable ReadCsv(const std::string& path, const CsvRequest& request);

// Rows for a model that takes samples of `shape`: its values, and optionally the label and the id.
CsvTable ReadCsvRecords(const std::string& path, const CsvRequest& request,
                        const SampleShape& shape);

}  // namespace trireme
