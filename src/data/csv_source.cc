#include "data/csv_source.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/csv.h"

namespace trireme {
namespace {

constexpr size_t kMostFiles = 3;

using FileNames = std::vector<std::string>;

bool FileIsThere(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// Every way to cut `rest` at commas into names of files that are there.
void FindCuts(const std::string& rest, FileNames& before, std::vector<FileNames>& found) {
  if (before.size() == kMostFiles) return;
  if (FileIsThere(rest)) {
    found.push_back(before);
    found.back().push_back(rest);
  }
  for (size_t comma = rest.find(','); comma != rest.npos; comma = rest.find(',', comma + 1)) {
    if (!FileIsThere(rest.substr(0, comma))) continue;
    before.push_back(rest.substr(0, comma));
    FindCuts(rest.substr(comma + 1), before, found);
    before.pop_back();
  }
}

}  // namespace

std::vector<std::string> CutFiles(const std::string& argument) {
  if (FileIsThere(argument)) return {argument};
  FileNames before;
  std::vector<FileNames> found;
  FindCuts(argument, before, found);
  if (found.size() == 1) return found[0];
  if (found.size() > 1) {
    throw UsageError(
        "data.source = 'csv:{}' can be split into files in {} ways; rename one of the files",
        argument, found.size());
  }
  FileNames files = Split(argument, ',');  // one that is missing is named when it is opened
  if (files.size() > kMostFiles) {
    throw UsageError(
        "data.source = 'csv:{}' names {} files; expected csv:FILE, csv:TRAIN,TEST or "
        "csv:TRAIN,VALIDATION,TEST",
        argument, files.size());
  }
  return files;
}

DataSet OpenCsv(const std::string& argument, const DataOptions& options, const KnownData& known) {
  const std::vector<std::string> files = CutFiles(argument);
  CsvTable train = ReadCsv(files[0], MakeCsvRequest(options, known));
  DataSet data{
      .shape = train.rows->shape(), .task = train.task, .classes = std::move(train.classes)};
  data.train = std::move(train.rows);
  data.columns = std::move(train.columns);
  data.codes = std::move(train.codes);
  data.summary = std::move(train.summary);
  data.notes = std::move(train.notes);
  const auto open = [&](const std::string& file) {
    CsvTable table =
        ReadCsv(file, MakeCsvRequest(options, {data.classes, data.columns, data.codes, data.task}));
    if (table.rows->shape() != data.shape) {
      throw Error("{}: {} values in a row, but {} has {}", file, table.rows->shape().channels,
                  files[0], data.shape.channels);
    }
    std::move(table.notes.begin(), table.notes.end(), std::back_inserter(data.notes));
    return std::move(table.rows);
  };
  if (files.size() == 3) data.validation = open(files[1]);
  if (files.size() > 1) data.test = open(files.back());
  return data;
}

}  // namespace trireme
