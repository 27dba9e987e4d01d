#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/csv_reader.h"

namespace trireme {

// Labels as they come: numbered by first appearance, or by the given classes. Borrows the texts.
class CsvLabels {
 public:
  explicit CsvLabels(std::span<const std::string> classes);

  int32_t Find(const CsvReader& reader, std::string_view field);

  // The classes, numbers in their order, else texts in theirs; `labels` are renumbered. Refuses
  // what is nothing to learn.
  std::vector<std::string> Finish(const std::string& path, std::vector<int32_t>& labels);

 private:
  int32_t Number(std::string_view name);
  // Whether all labels are whole numbers; some numbers with a fraction are refused.
  bool AreNumbers(const std::string& path) const;

  bool known_;
  std::unordered_map<std::string_view, int32_t> numbers_;
  std::vector<std::string_view> names_;
};

}  // namespace trireme
