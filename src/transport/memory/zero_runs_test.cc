#include "transport/memory/zero_runs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/random.h"

namespace trireme {
namespace {

std::vector<ZeroRun> RunsIn(const PackedZeros& packed) {
  std::vector<ZeroRun> runs(packed.runs);
  std::memcpy(runs.data(), packed.bytes.data(), runs.size() * sizeof(ZeroRun));
  return runs;
}

// As a box does it.
std::vector<float> Unpack(const PackedZeros& packed, size_t length) {
  const std::vector<ZeroRun> runs = RunsIn(packed);
  const size_t values = CheckZeroRuns(runs, length), head = runs.size() * sizeof(ZeroRun);
  EXPECT_EQ(packed.bytes.size(), head + values * sizeof(float));
  std::vector<float> all(length, -7);
  std::memcpy(all.data() + length - values, packed.bytes.data() + head, values * sizeof(float));
  SpreadZeros(runs, all);
  return all;
}

TEST(ZeroRuns, ComeOutAsTheyWentIn) {
  int packed_ones = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const size_t length = Hash(seed, 1) % 700;
    std::vector<float> values(length);
    for (size_t at = 0; at < length;) {  // stretches of both kinds
      const bool zero = Hash(seed, at + 2) % 4 != 0;
      const size_t end = std::min<size_t>(length, at + 1 + Hash(seed, at + 3) % 90);
      for (; at < end; ++at) values[at] = zero ? 0 : float(at + 1);
    }
    const auto packed = PackZeros(values);
    if (!packed) continue;
    ++packed_ones;
    EXPECT_LE(packed->runs, MostZeroRuns(length));
    EXPECT_LE(4 * packed->bytes.size(), 3 * length * sizeof(float));
    EXPECT_EQ(Unpack(*packed, length), values);
  }
  EXPECT_GT(packed_ones, 100);
}

TEST(ZeroRuns, AreLeftOutOnlyWhereThatIsWorthIt) {
  std::vector<float> values(1000, 1);
  EXPECT_FALSE(PackZeros(values));
  EXPECT_FALSE(PackZeros({}));
  for (size_t i = 0; i < 1000; i += 2) values[i] = 0;  // no two in a row
  EXPECT_FALSE(PackZeros(values));
  values.assign(1000, 0);
  const auto nothing = PackZeros(values);
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->bytes.size(), sizeof(ZeroRun));
  EXPECT_EQ(Unpack(*nothing, 1000), values);
  values[500] = -0.0f;  // has a sign, and keeps it
  const auto one = PackZeros(values);
  ASSERT_TRUE(one);
  EXPECT_TRUE(std::signbit(Unpack(*one, 1000)[500]));
}

// Of many values only some are looked at first: rows of which a few columns are zero, or all but a
// few, whatever their length is.
TEST(ZeroRuns, AreFoundInAnyColumns) {
  for (const size_t row : {256, 784, 976, 1024, 4096}) {
    for (const size_t shift : {size_t{0}, row / 2}) {
      std::vector<float> few(300 * row, 0), most(300 * row, 1);
      for (size_t i = 0; i < few.size(); ++i) {
        const bool in_eighth = (i + shift) % row < row / 8;
        if (in_eighth) few[i] = 1;
        if (in_eighth) most[i] = 0;
      }
      const auto packed = PackZeros(few);
      ASSERT_TRUE(packed) << row;
      EXPECT_EQ(Unpack(*packed, few.size()), few);
      EXPECT_FALSE(PackZeros(most)) << row;
    }
  }
}

TEST(ZeroRuns, ThatDoNotFitAreRefused) {
  EXPECT_EQ(CheckZeroRuns(std::vector<ZeroRun>{{3, 4}, {0, 2}}, 9), 6u);
  EXPECT_THROW(CheckZeroRuns(std::vector<ZeroRun>{{3, 4}}, 8), Error);
  EXPECT_THROW(CheckZeroRuns(std::vector<ZeroRun>{{~0u, ~0u}, {2, 0}}, 0), Error);
}

}  // namespace
}  // namespace trireme
