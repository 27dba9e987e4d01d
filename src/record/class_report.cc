#include "record/class_report.h"

#include <numeric>

namespace trireme {
namespace {

std::optional<double> Share(int64_t part, int64_t of) {
  if (of == 0) return {};
  return double(part) / double(of);
}

}  // namespace

std::vector<ClassScore> ScoresOf(const Confusion& confusion) {
  std::vector<ClassScore> scores;
  for (size_t c = 0; c < confusion.size(); ++c) {
    const auto& row = confusion[c];
    const int64_t samples = std::accumulate(row.begin(), row.end(), int64_t{0});
    int64_t taken = 0;
    for (const auto& other : confusion) taken += other[c];
    const int64_t hits = row[c];
    scores.push_back(
        {samples, Share(hits, taken), Share(hits, samples), Share(2 * hits, samples + taken)});
  }
  return scores;
}

MacroScore MacroOf(std::span<const ClassScore> classes) {
  double precision = 0, recall = 0, f1 = 0;
  int64_t count = 0;
  for (const ClassScore& score : classes) {
    if (score.samples == 0) continue;
    ++count;
    precision += score.precision.value_or(0);
    recall += *score.recall;
    f1 += *score.f1;
  }
  if (count == 0) return {};
  const double n = double(count);
  return {precision / n, recall / n, f1 / n};
}

}  // namespace trireme
