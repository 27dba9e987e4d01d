#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace trireme {

// Values of which many are zero, as an add sends them: where they lie, and then all that are not.
struct ZeroRun {
  uint32_t zeros = 0, values = 0;  // so many zeros, then so many values
};

struct PackedZeros {
  uint32_t runs = 0;
  std::vector<std::byte> bytes;  // the runs, then the values
};
// Nothing: too few are zero to be worth it. A zero has no sign, so what is added stays the same.
std::optional<PackedZeros> PackZeros(std::span<const float> values);

constexpr size_t kZeroBlock = 16;  // values: fewer zeros in a row are sent
constexpr uint64_t MostZeroRuns(uint64_t length) { return length / kZeroBlock + 2; }
// The values of all runs, which must have `length` in all, zeros with them; an Error else.
uint64_t CheckZeroRuns(std::span<const ZeroRun> runs, uint64_t length);
// Puts the values where they belong: they lie at the end of `all`, as many as the runs have.
void SpreadZeros(std::span<const ZeroRun> runs, std::span<float> all);

}  // namespace trireme
