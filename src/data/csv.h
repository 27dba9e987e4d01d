#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/sample.h"
#include "data/source.h"

namespace trireme {

// How a csv file is to be understood.
struct CsvRequest {
  std::string label;  // column by name or number from 1; empty: the last
  std::string id;     // columns to leave out, likewise, with commas between; empty: none
  // If not empty: the labels' names in order, and others are refused. Else they are collected.
  std::span<const std::string> classes = {};
  // If not empty: a file with a header must have these columns, in any order; one without has them
  // in this order.
  ColumnNames columns = {};
};

struct CsvTable {
  std::unique_ptr<Source> rows;
  std::vector<std::string> classes;  // numbers in their order, else texts in theirs
  ColumnNames columns;
  bool labelled = true;
  std::vector<std::string> notes;  // what may be wrong with it, a sentence each
};

// A table to learn from: numbers, and a label that may be text. The first line is a header if
// one of its numbers is none, or if a column is asked for by name.
CsvTable ReadCsv(const std::string& path, const CsvRequest& request);

// Rows for a model that takes samples of `shape`: its values, and optionally the label and the id.
CsvTable ReadCsvRecords(const std::string& path, const CsvRequest& request,
                        const SampleShape& shape);

}  // namespace trireme
