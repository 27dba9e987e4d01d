#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trireme {

// How a column of a table becomes inputs of a network, learnt from the training file.
struct ColumnCode {
  std::vector<std::string> categories;  // of a column of text: one input each; empty: of numbers
  std::optional<float> fill;  // of numbers: stands for a missing one; none: that is refused
  bool flagged = false;       // of numbers: a second input is 1 where the number is missing

  bool text() const { return !categories.empty(); }
  int inputs() const { return text() ? static_cast<int>(categories.size()) : flagged ? 2 : 1; }
  bool operator==(const ColumnCode&) const = default;
};

// Of every column that is not the label and not left out; empty: numbers, none of them missing.
using ColumnCodes = std::vector<ColumnCode>;

inline int64_t InputsOf(const ColumnCodes& codes) {
  int64_t inputs = 0;
  for (const ColumnCode& code : codes) inputs += code.inputs();
  return inputs;
}

}  // namespace trireme
