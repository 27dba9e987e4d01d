#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/csv.h"
#include "data/csv_reader.h"
#include "data/csv_scan.h"
#include "data/task.h"

namespace trireme {

// Refuses a column that cannot be learnt, as far as its fields tell. `column` in words.
void CheckLabelColumn(const CsvScan& scan, int label, const std::string& path,
                      const std::string& column, const CsvRequest& request);

// Labels as they come: numbered by first appearance, or by the given classes. Borrows the texts.
class CsvLabels {
 public:
  CsvLabels(const CsvRequest& request, bool decimal_comma);

  int32_t Find(const CsvReader& reader, std::string_view field);

  // Whether they are classes, if the request leaves that open, and the classes: numbers in their
  // order, else texts in theirs. `labels` are renumbered, or become the bits of numbers. Refuses
  // what is nothing to learn.
  struct Found {
    Task task = Task::kClassification;
    std::vector<std::string> classes = {};
  };
  Found Finish(const std::string& path, std::vector<int32_t>& labels);

 private:
  int32_t Number(std::string_view name);
  std::optional<float> ValueOf(std::string_view name) const;
  bool AllNumbers() const;
  // Whether so many rows have numbers that are no classes; refused where some are missing.
  bool AreQuantities(const std::string& path, size_t rows) const;
  void RefuseClasses(const std::string& path, size_t rows) const;
  std::vector<std::string> SortClasses(std::vector<int32_t>& labels) const;

  const std::optional<Task> task_;  // none: found at the end
  const bool known_, learns_, decimal_comma_;
  std::unordered_map<std::string_view, int32_t> numbers_;
  std::vector<std::string_view> names_;
};

}  // namespace trireme
