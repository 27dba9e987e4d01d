#include "study/claims.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace trireme {
namespace {

// The other keys and their values.
std::string OthersOf(const ReplayPart& part, const Combination& combination) {
  std::vector<std::string> words;
  for (size_t i = 0; i < part.plan.vary.size(); ++i) {
    if (i != part.axis) words.push_back(part.plan.vary[i].key + "=" + combination.values[i]);
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

const SweepNumbers* FindRow(std::span<const SweepNumbers> rows,
                            const std::vector<std::string>& values) {
  const auto at = std::ranges::find_if(
      rows, [&](const SweepNumbers& row) { return row.combination.values == values; });
  return at != rows.end() && at->seconds ? &*at : nullptr;
}

// With the first value of the other keys.
std::string PeakText(const ReplayPart& part, std::span<const SweepNumbers> rows,
                     const std::string& value) {
  std::vector<std::string> values;
  for (const Variation& variation : part.plan.vary) values.push_back(variation.values[0]);
  values[part.axis] = value;
  const SweepNumbers* row = FindRow(rows, values);
  double peak = 0;
  for (const SweepRun& run : row ? row->runs : std::vector<SweepRun>()) {
    peak = std::max(peak, run.peak_bytes.value_or(0));
  }
  return peak > 0 ? FormatBytes(peak) : "";
}

}  // namespace

std::string FastestOf(const ReplayPart& part, std::span<const SweepNumbers> rows) {
  std::vector<std::pair<std::string, const SweepNumbers*>> best;  // by the other keys
  for (const SweepNumbers& row : rows) {
    if (!row.seconds) continue;
    const std::string others = OthersOf(part, row.combination);
    const auto at = std::ranges::find(best, others, [](const auto& b) { return b.first; });
    if (at == best.end()) {
      best.emplace_back(others, &row);
    } else if (row.seconds->median < at->second->seconds->median) {
      at->second = &row;
    }
  }
  std::vector<std::string> words;
  for (const auto& [others, row] : best) {
    words.push_back(row->combination.values[part.axis] +
                    (others.empty() ? "" : " (" + others + ")"));
  }
  if (words.empty()) return "";
  return fmt::format("fastest with {} = {}", part.plan.vary[part.axis].key, fmt::join(words, ", "));
}

std::string TimesAsLong(const ReplayPart& part, std::span<const SweepNumbers> rows) {
  if (part.plan.vary.size() < 2) return "";
  const Variation &axis = part.plan.vary[0], &sides = part.plan.vary[1];
  std::vector<std::string> ratios, at;
  for (const std::string& value : axis.values) {
    const SweepNumbers* first = FindRow(rows, {value, sides.values[0]});
    const SweepNumbers* second = FindRow(rows, {value, sides.values[1]});
    if (!first || !second || second->seconds->median <= 0) continue;
    ratios.push_back(fmt::format("{:.2f}", first->seconds->median / second->seconds->median));
    at.push_back(value);
  }
  if (ratios.empty()) return "";
  return fmt::format("{} takes {} times as long as {} with {} = {}", sides.values[0],
                     fmt::join(ratios, ", "), sides.values[1], axis.key, fmt::join(at, ", "));
}

std::string PeakMemory(const ReplayPart& part, std::span<const SweepNumbers> rows) {
  const Variation& axis = part.plan.vary[part.axis];
  const std::string low = PeakText(part, rows, axis.values.front());
  const std::string high = PeakText(part, rows, axis.values.back());
  if (low.empty() || high.empty()) return "";
  return fmt::format("{} of the process' memory with {} = {}, {} with {}", low, axis.key,
                     axis.values.front(), high, axis.values.back());
}

}  // namespace trireme
