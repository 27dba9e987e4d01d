#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/csv_columns.h"

namespace trireme {

// What may still be wrong with a table that could be read, a sentence each. `labels`: the numbers
// of classes, or none.
std::vector<std::string> NotesOnTable(const std::string& path, const CsvColumns& columns,
                                      const ColumnCodes& codes, std::span<const float> values,
                                      std::span<const int32_t> labels);

}  // namespace trireme
