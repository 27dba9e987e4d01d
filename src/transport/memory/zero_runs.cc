#include "transport/memory/zero_runs.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/assert.h"
#include "base/error.h"

namespace trireme {
namespace {

constexpr size_t kMost = std::numeric_limits<uint32_t>::max();
constexpr size_t kMany = 1 << 16;  // of so many values ...
constexpr size_t kOneOf = 61;      // ... one of so many blocks is looked at first

bool IsZero(std::span<const float> block) {
  uint32_t any = 0;
  for (const float& value : block) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    any |= bits;
  }
  return any == 0;
}

// False: so few are zero that looking at all of them would cost more than it saves.
bool MayBeWorthIt(std::span<const float> values) {
  if (values.size() < kMany) return true;
  const size_t looks = values.size() / (kOneOf * kZeroBlock);
  size_t zeros = 0;
  for (size_t i = 0; i < looks; ++i) {
    // Each time another of the 61, so that rows of any length are met at all their columns.
    zeros += IsZero(values.subspan((kOneOf * i + 7 * i % kOneOf) * kZeroBlock, kZeroBlock));
  }
  return 8 * zeros >= looks;  // a quarter is worth it
}

// Whole blocks of zeros, and what is between them.
std::vector<ZeroRun> RunsOf(std::span<const float> values) {
  std::vector<ZeroRun> runs(1);
  for (size_t at = 0; at < values.size(); at += kZeroBlock) {
    const auto block = values.subspan(at, std::min(kZeroBlock, values.size() - at));
    const auto size = uint32_t(block.size());
    const bool zero = IsZero(block);
    const ZeroRun& last = runs.back();
    if ((zero && last.values > 0) || last.zeros + size_t(size) > kMost ||
        last.values + size_t(size) > kMost) {
      runs.emplace_back();
    }
    (zero ? runs.back().zeros : runs.back().values) += size;
  }
  return runs;
}

}  // namespace

std::optional<PackedZeros> PackZeros(std::span<const float> values) {
  if (!MayBeWorthIt(values)) return {};
  const std::vector<ZeroRun> runs = RunsOf(values);
  size_t sent = 0;
  for (const ZeroRun& run : runs) sent += run.values;
  const size_t bytes = runs.size() * sizeof(ZeroRun) + sent * sizeof(float);
  if (4 * bytes > 3 * values.size_bytes() || runs.size() > kMost) return {};
  PackedZeros packed{.runs = uint32_t(runs.size()), .bytes = {}};
  packed.bytes.reserve(bytes);
  const auto append = [&](std::span<const std::byte> more) {
    packed.bytes.insert(packed.bytes.end(), more.begin(), more.end());
  };
  append(std::as_bytes(std::span(runs)));
  size_t at = 0;
  for (const ZeroRun& run : runs) {
    append(std::as_bytes(values.subspan(at + run.zeros, run.values)));
    at += size_t{run.zeros} + run.values;
  }
  return packed;
}

uint64_t CheckZeroRuns(std::span<const ZeroRun> runs, uint64_t length) {
  uint64_t all = 0, values = 0;
  for (const ZeroRun& run : runs) {
    all += uint64_t{run.zeros} + run.values;
    values += run.values;
  }
  if (all == length) return values;
  throw Error("the runs of an add have {} values, but the add has {}", all, length);
}

// A value never moves towards the end, so none is overwritten before it has moved.
void SpreadZeros(std::span<const ZeroRun> runs, std::span<float> all) {
  size_t values = 0, to = 0;
  for (const ZeroRun& run : runs) values += run.values;
  TRIREME_ASSERT(values <= all.size());
  size_t from = all.size() - values;
  for (const ZeroRun& run : runs) {
    const auto zeros = all.subspan(to, run.zeros);
    to += run.zeros;
    TRIREME_ASSERT(to <= from);
    std::ranges::fill(zeros, 0.0f);
    if (run.values > 0) std::memmove(&all[to], &all[from], run.values * sizeof(float));
    to += run.values;
    from += run.values;
  }
}

}  // namespace trireme
