#include "data/fields.h"

#include <fmt/core.h>

#include "base/assert.h"

namespace trireme {

std::vector<std::string> FieldNames(const ColumnNames& columns, const ColumnCodes& codes,
                                    size_t inputs) {
  std::vector<std::string> names(codes.empty() ? inputs : codes.size());
  for (size_t i = 0; i < names.size(); ++i) {
    names[i] = i < columns.values.size() ? columns.values[i] : fmt::format("column {}", i + 1);
  }
  return names;
}

std::vector<std::string> FieldsOf(std::span<const float> inputs, const ColumnCodes& codes) {
  std::vector<std::string> fields;
  if (codes.empty()) {
    for (const float value : inputs) fields.push_back(fmt::format("{:.6g}", value));
    return fields;
  }
  TRIREME_ASSERT(int64_t(inputs.size()) == InputsOf(codes));
  size_t at = 0;
  for (const ColumnCode& code : codes) {
    std::string& field = fields.emplace_back();
    if (code.text()) {
      for (size_t i = 0; i < code.categories.size(); ++i) {
        if (inputs[at + i] != 0) field = code.categories[i];
      }
    } else if (!code.flagged || inputs[at + 1] == 0) {
      field = fmt::format("{:.6g}", inputs[at]);
    }
    at += size_t(code.inputs());
  }
  return fields;
}

}  // namespace trireme
