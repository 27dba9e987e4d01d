// Each unit of this machine by itself: how it rounds and what its tiles hold.
#include "engine/cpu/bf16/unit.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "engine/cpu/bf16/units_here.h"
#include "hwy/aligned_allocator.h"

namespace trireme::cpu {
namespace {

// The nearest bf16, ties to even, by the definition.
float Nearest(float x) {
  if (std::isnan(x)) return x;
  const uint32_t bits = std::bit_cast<uint32_t>(x), low = bits & 0xffff, high = bits >> 16;
  const bool up = low > 0x8000 || (low == 0x8000 && (high & 1));
  return std::bit_cast<float>((high + up) << 16);
}

std::vector<BFloat> Short(const std::vector<float>& numbers) {
  std::vector<BFloat> all;
  for (const float x : numbers) all.push_back(BFloat(std::bit_cast<uint32_t>(Nearest(x)) >> 16));
  return all;
}

// Numbers of many sizes, ties and the last of their kind among them.
std::vector<float> Trying(size_t size) {
  const float special[] = {0.0f,
                           -0.0f,
                           1.0f,
                           std::bit_cast<float>(0x3f808000u),  // ties
                           std::bit_cast<float>(0x3f818000u),
                           std::bit_cast<float>(0x3f818001u),
                           std::bit_cast<float>(0xbf807fffu),
                           std::numeric_limits<float>::infinity(),
                           -std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN(),
                           std::numeric_limits<float>::max(),  // becomes infinite
                           1e-30f,
                           -3e37f};
  const Random random(3);
  std::vector<float> numbers(size);
  for (size_t i = 0; i < size; ++i) {
    numbers[i] = i < std::size(special)
                     ? special[i]
                     : float(std::ldexp(random.Normal(i), int(random.Bits(i) % 40) - 20));
  }
  return numbers;
}

class UnitTest : public testing::TestWithParam<const MatrixUnit*> {
 protected:
  UnitTest() : unit_(*GetParam()), a_(Size(unit_.rows)), b_(Size(unit_.columns)) { unit_.begin(); }
  ~UnitTest() override { unit_.end(); }

  static constexpr size_t kMostDepth = 128;
  static hwy::AlignedFreeUniquePtr<BFloat[]> Size(size_t lines) {
    const size_t size = lines * kMostDepth;
    auto memory = hwy::AllocateAligned<BFloat>(size);
    std::fill_n(memory.get(), size, BFloat(0x7fc0));  // not a number, until it is written
    return memory;
  }

  // Lines of a matrix that lies as lines[line][k], or across as lines[k][line].
  template <class T>
  static std::vector<T> Turned(const std::vector<T>& m, size_t lines, size_t depth) {
    std::vector<T> t(m.size());
    for (size_t i = 0; i < lines; ++i) {
      for (size_t k = 0; k < depth; ++k) t[k * lines + i] = m[i * depth + k];
    }
    return t;
  }
  template <class T>
  static void Pack(MatrixUnit::Pack<T> along, MatrixUnit::Pack<T> across, bool is_across,
                   const std::vector<T>& m, size_t count, size_t depth, BFloat* to) {
    const std::vector<T> turned = Turned(m, count, depth);
    std::vector<const T*> lines;
    for (size_t i = 0; i < (is_across ? depth : count); ++i) {
      lines.push_back(is_across ? turned.data() + i * count : m.data() + i * depth);
    }
    (is_across ? across : along)(lines.data(), count, depth, to);
  }

  std::vector<float> Multiply(const std::vector<float>& a, const std::vector<float>& b, size_t rows,
                              size_t columns, size_t depth, bool across, std::vector<float> c = {},
                              const float* bias = nullptr, bool relu = false) {
    Pack(unit_.floats.rows_along, unit_.floats.rows_across, across, a, rows, depth, a_.get());
    Pack(unit_.pack_columns_along, unit_.floats.columns_across, across, b, columns, depth,
         b_.get());
    const bool add = !c.empty();
    c.resize(rows * columns);
    const std::vector<float*> targets = RowsOf(c, rows);
    unit_.multiply(depth, a_.get(), b_.get(),
                   {.floats = targets.data(),
                    .count = rows,
                    .columns = columns,
                    .before = add ? targets.data() : nullptr,
                    .bias = bias,
                    .relu = relu});
    return c;
  }

  // The same from operands in bf16, and with `before` added.
  std::vector<BFloat> MultiplyNarrow(const std::vector<float>& a, const std::vector<float>& b,
                                     size_t rows, size_t columns, size_t depth, bool across,
                                     std::vector<float> before, const std::vector<float>& bias) {
    Pack(unit_.bfloats.rows_along, unit_.bfloats.rows_across, across, Short(a), rows, depth,
         a_.get());
    if (across) {
      Pack(unit_.bfloats.columns_across, unit_.bfloats.columns_across, true, Short(b), columns,
           depth, b_.get());
    } else {
      Pack(unit_.pack_columns_along, unit_.pack_columns_along, false, b, columns, depth, b_.get());
    }
    std::vector<BFloat> c(rows * columns + 1, 0x7fc0);
    const std::vector<BFloat*> targets = RowsOf(c, rows);
    const std::vector<float*> added = RowsOf(before, rows);
    unit_.multiply(depth, a_.get(), b_.get(),
                   {.bfloats = targets.data(),
                    .count = rows,
                    .columns = columns,
                    .before = added.data(),
                    .bias = bias.data(),
                    .relu = true});
    EXPECT_EQ(c.back(), 0x7fc0);  // nothing beyond
    c.pop_back();
    return c;
  }

  template <class T>
  static std::vector<T*> RowsOf(std::vector<T>& c, size_t rows) {
    std::vector<T*> all;
    for (size_t r = 0; r < rows; ++r) all.push_back(c.data() + r * (c.size() / rows));
    return all;
  }

  const MatrixUnit& unit_;
  hwy::AlignedFreeUniquePtr<BFloat[]> a_, b_;
};

// Times one, all by themselves.
TEST_P(UnitTest, RoundsToTheNearestTiesToEven) {
  for (const bool across : {false, true}) {
    const std::vector<float> numbers = Trying(unit_.rows * 11);
    for (size_t k = 0; k < 11; ++k) {
      std::vector<float> a(unit_.rows);
      for (size_t r = 0; r < unit_.rows; ++r) a[r] = numbers[r * 11 + k];
      const std::vector<float> y = Multiply(a, {1.0f}, unit_.rows, 1, 1, across);
      for (size_t r = 0; r < unit_.rows; ++r) {
        const float want = Nearest(a[r]);
        EXPECT_TRUE(y[r] == want || (std::isnan(y[r]) && std::isnan(want)))
            << a[r] << " became " << y[r] << " instead of " << want;
      }
    }
    const std::vector<float> b(numbers.begin(), numbers.begin() + ptrdiff_t(unit_.columns));
    const std::vector<float> y = Multiply({1.0f}, b, 1, unit_.columns, 1, across);
    for (size_t j = 0; j < unit_.columns; ++j) {
      const float want = Nearest(b[j]);
      EXPECT_TRUE(y[j] == want || (std::isnan(y[j]) && std::isnan(want))) << b[j];
    }
  }
}

// Small whole numbers: every sum is exact.
TEST_P(UnitTest, TilesOfEverySizeAreExact) {
  const Random random(5);
  uint64_t at = 0;
  const auto numbers = [&](size_t size) {
    std::vector<float> all(size);
    for (float& x : all) x = float(int(random.Bits(++at) % 17)) - 8;
    return all;
  };
  for (const size_t rows : {size_t{1}, size_t{3}, unit_.rows - 1, unit_.rows}) {
    for (const size_t columns : {size_t{1}, size_t{5}, unit_.columns - 1, unit_.columns}) {
      for (const size_t depth : {1, 2, 3, 4, 5, 31, 32, 33, 63, 64, 100, 128}) {
        const auto a = numbers(rows * depth), b = numbers(columns * depth);
        const auto before = numbers(rows * columns), bias = numbers(columns);
        std::vector<float> sums(rows * columns);
        for (size_t i = 0; i < rows * columns; ++i) {
          for (size_t k = 0; k < depth; ++k) {
            sums[i] += a[i / columns * depth + k] * b[i % columns * depth + k];
          }
        }
        std::vector<float> added = sums, biased = sums, both = sums;
        for (size_t i = 0; i < sums.size(); ++i) {
          added[i] += before[i];
          biased[i] = std::max(0.0f, biased[i] + bias[i % columns]);
          both[i] = std::max(0.0f, added[i] + bias[i % columns]);
        }
        for (const bool across : {false, true}) {
          ASSERT_EQ(Multiply(a, b, rows, columns, depth, across), sums)
              << rows << " x " << columns << " x " << depth << ", across " << across;
          ASSERT_EQ(Multiply(a, b, rows, columns, depth, across, before), added);
          ASSERT_EQ(Multiply(a, b, rows, columns, depth, across, {}, bias.data(), true), biased);
          ASSERT_EQ(MultiplyNarrow(a, b, rows, columns, depth, across, before, bias), Short(both));
        }
      }
    }
  }
}

TEST_P(UnitTest, CountsItsChains) { EXPECT_GT(unit_.run_chains(10), 1000); }

TEST(AllMatrixUnits, OneOfThemIsFoundOrItIsSaidWhyNot) {
  if (UnitsHere().empty()) {
    EXPECT_EQ(FindMatrixUnit(), nullptr);
    EXPECT_NE(WhyNoMatrixUnit(), "");
  } else {
    EXPECT_EQ(FindMatrixUnit(), UnitsHere()[0]);
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(UnitTest);
INSTANTIATE_TEST_SUITE_P(All, UnitTest, testing::ValuesIn(UnitsHere()), UnitText);

}  // namespace
}  // namespace trireme::cpu
