#pragma once
#include <span>
#include <string>
#include <vector>

#include "data/column_codes.h"
#include "data/source.h"

namespace trireme {

// The columns of a table that a row's inputs come from: their names, or their numbers from 1 where
// these are not known.
std::vector<std::string> FieldNames(const ColumnNames& columns, const ColumnCodes& codes,
                                    size_t inputs);

// What stood in them: numbers, texts, or nothing where a field was missing.
std::vector<std::string> FieldsOf(std::span<const float> inputs, const ColumnCodes& codes);

}  // namespace trireme
