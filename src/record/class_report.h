#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace trireme {

// [true class][predicted class]: counts of test samples.
using Confusion = std::vector<std::vector<int64_t>>;

// How well one class is told from the others. What would be a share of nothing is nothing.
struct ClassScore {
  int64_t samples = 0;              // of the class
  std::optional<double> precision;  // of those taken for it, the share that is; nothing: none was
  std::optional<double> recall;     // of its samples, the share that was recognised
  std::optional<double> f1;         // the harmonic mean of both: 2 hits / (samples + taken for it)
};
std::vector<ClassScore> ScoresOf(const Confusion& confusion);

// Means over the classes that have test samples; one that nothing was taken for has precision 0.
struct MacroScore {
  std::optional<double> precision, recall, f1;
};
MacroScore MacroOf(std::span<const ClassScore> classes);

}  // namespace trireme
