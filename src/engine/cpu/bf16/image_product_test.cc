// Convolutions from images as they lie, against plain loops in float64.
#include "engine/cpu/bf16/image_product.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "base/random.h"
#include "base/team.h"
#include "engine/cpu/bf16/units_here.h"
#include "hwy/aligned_allocator.h"

namespace trireme::cpu::bf16 {
namespace {

template <class T>
using Memory = hwy::AlignedFreeUniquePtr<T[]>;

constexpr size_t kGuard = 32;  // values behind a result that stay as they are
constexpr BFloat kUntouched = 0x7fc1;

float Wide(BFloat x) { return std::bit_cast<float>(uint32_t{x} << 16); }
float Wide(float x) { return x; }

// Numbers that bf16 holds exactly.
template <class T>
Memory<T> Numbers(uint64_t stream, size_t size) {
  const Random random(stream);
  auto all = hwy::AllocateAligned<T>(size);
  for (size_t i = 0; i < size; ++i) {
    const auto bits = BFloat(std::bit_cast<uint32_t>(float(random.Normal(i))) >> 16);
    if constexpr (std::is_same_v<T, BFloat>) {
      all[i] = bits;
    } else {
      all[i] = Wide(bits);
    }
  }
  return all;
}

ConvShape Shape(size_t height, size_t width, size_t in, size_t out, size_t kernel, size_t stride,
                size_t padding) {
  const auto after = [&](size_t size) { return (size + 2 * padding - kernel) / stride + 1; };
  return {height, width, in, after(height), after(width), out, kernel, stride, padding};
}

std::string Text(const ConvShape& s) {
  return fmt::format("{}x{}x{} -> {}, kernel {}, stride {}, padding {}", s.height, s.width, s.in,
                     s.out, s.kernel, s.stride, s.padding);
}

// Calls f(input pixel, output pixel, tap) for all that meet.
template <class F>
void ForEachTap(const ConvShape& s, const F& f) {
  for (size_t o = 0; o < s.out_pixels(); ++o) {
    for (size_t tap = 0; tap < s.kernel * s.kernel; ++tap) {
      const size_t y = o / s.out_width * s.stride + tap / s.kernel - s.padding;
      const size_t x = o % s.out_width * s.stride + tap % s.kernel - s.padding;
      if (y < s.height && x < s.width) f(y * s.width + x, o, tap);
    }
  }
}

struct Sum {
  double value = 0, size = 0;  // size: of what is added up
  void Add(double a, double b) {
    value += a * b;
    size += std::abs(a * b);
  }
};

void ExpectNear(const std::vector<Sum>& want, const BFloat* got, const std::string& text) {
  size_t wrong = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double error = std::abs(double(Wide(got[i])) - want[i].value);
    // Half a unit in the last place of bf16; float32 sums.
    if (!(error <= std::abs(want[i].value) / 256 + 1e-5 * want[i].size)) ++wrong;
  }
  EXPECT_EQ(wrong, 0u) << "of " << want.size() << ": " << text;
}

class ImageProductTest : public testing::TestWithParam<const MatrixUnit*> {
 protected:
  // What compute(result, scratch, team) leaves in `size` values; the same bits for any team.
  template <class Size, class F>
  Memory<BFloat> OnTeams(size_t size, const Size& scratch_size, const std::string& text,
                         const F& compute) {
    Memory<BFloat> first;
    for (const int threads : {1, 2, 5}) {
      Team team(threads);
      auto result = hwy::AllocateAligned<BFloat>(size + kGuard);
      std::fill_n(result.get(), size + kGuard, kUntouched);
      const size_t needed = scratch_size(size_t(threads));
      auto scratch = hwy::AllocateAligned<BFloat>(needed + kGuard);
      std::fill_n(scratch.get(), needed + kGuard, kUntouched);  // not a number
      compute(result.get(), scratch.get(), team);
      for (size_t i = 0; i < kGuard; ++i) {
        EXPECT_EQ(result[size + i], kUntouched) << text;
        EXPECT_EQ(scratch[needed + i], kUntouched) << text;
      }
      if (!first) {
        first = std::move(result);
      } else {
        EXPECT_TRUE(std::equal(first.get(), first.get() + size, result.get()))
            << text << ", " << threads << " threads";
      }
    }
    return first;
  }

  template <class From>
  void CheckForward(const ConvShape& s, size_t count, bool finished, bool stream) {
    const MatrixUnit& unit = *GetParam();
    ASSERT_TRUE(ConvolvesImages(unit, s)) << Text(s);
    const size_t in = s.in_pixels() * s.in, out = s.out_pixels() * s.out;
    const auto x = Numbers<From>(1, count * in);
    const auto weights = Numbers<float>(2, s.kernel * s.kernel * s.in * s.out);
    const auto bias = Numbers<float>(3, s.out);
    const Finish finish = {
        .bias = finished ? bias.get() : nullptr, .relu = finished, .stream = stream};
    std::vector<Sum> want(count * out);
    for (size_t i = 0; i < count; ++i) {
      ForEachTap(s, [&](size_t from, size_t to, size_t tap) {
        for (size_t k = 0; k < s.in; ++k) {
          const double a = Wide(x[i * in + from * s.in + k]);
          for (size_t c = 0; c < s.out; ++c) {
            want[i * out + to * s.out + c].Add(a, weights[(tap * s.in + k) * s.out + c]);
          }
        }
      });
    }
    for (size_t i = 0; finished && i < want.size(); ++i) {
      want[i].value = std::max(0.0, want[i].value + bias[i % s.out]);
    }
    const bool narrow = std::is_same_v<From, BFloat>;
    const auto size = [&](size_t threads) {
      return ConvolveImagesScratch(unit, s, count, narrow, threads);
    };
    const auto y =
        OnTeams(count * out, size, Text(s), [&](BFloat* to, BFloat* scratch, Team& team) {
          ConvolveImages(unit, s, count, x.get(), weights.get(), to, finish, scratch, team);
        });
    ExpectNear(want, y.get(), Text(s));
  }

  template <class From>
  void CheckBack(const ConvShape& s, size_t count, bool stream) {
    const MatrixUnit& unit = *GetParam();
    ASSERT_TRUE(ConvolvesImagesBack(unit, s)) << Text(s);
    const size_t in = s.in_pixels() * s.in, out = s.out_pixels() * s.out;
    const auto dy = Numbers<From>(4, count * out);
    const auto weights = Numbers<float>(5, s.kernel * s.kernel * s.in * s.out);
    std::vector<Sum> want(count * in);
    for (size_t i = 0; i < count; ++i) {
      ForEachTap(s, [&](size_t to, size_t from, size_t tap) {
        for (size_t k = 0; k < s.in; ++k) {
          Sum& sum = want[i * in + to * s.in + k];
          for (size_t c = 0; c < s.out; ++c) {
            sum.Add(Wide(dy[i * out + from * s.out + c]), weights[(tap * s.in + k) * s.out + c]);
          }
        }
      });
    }
    const bool narrow = std::is_same_v<From, BFloat>;
    const auto size = [&](size_t threads) {
      return ConvolveImagesBackScratch(unit, s, count, narrow, threads);
    };
    const auto dx =
        OnTeams(count * in, size, Text(s), [&](BFloat* to, BFloat* scratch, Team& team) {
          ConvolveImagesBack(unit, s, count, dy.get(), weights.get(), to, {.stream = stream},
                             scratch, team);
        });
    ExpectNear(want, dx.get(), Text(s) + ", back");
  }
};

// Of one tap: rows that fill tiles and that do not, depths on both sides of where the order of
// loops changes.
TEST_P(ImageProductTest, RowsAgreeWithPlainLoops) {
  for (const size_t pixels : {9, 11, 31, 32, 33, 64}) {
    CheckForward<BFloat>(Shape(1, pixels, 32, 64, 1, 1, 0), 1, pixels % 2, pixels == 64);
    CheckBack<BFloat>(Shape(1, pixels, 64, 96, 1, 1, 0), 1, pixels == 32);
  }
  CheckForward<BFloat>(Shape(7, 7, 128, 256, 1, 1, 0), 5, false, true);
  CheckForward<BFloat>(Shape(7, 7, 1312, 64, 1, 1, 0), 3, true, true);
  CheckBack<BFloat>(Shape(7, 7, 64, 2048, 1, 1, 0), 2, false);
}

// Lines of a tile, of several, of parts of them, and short ones.
TEST_P(ImageProductTest, TapsAgreeWithPlainLoops) {
  for (const size_t width : {3, 7, 11, 12, 14, 16, 17, 30, 35}) {
    CheckForward<BFloat>(Shape(5, width, 32, 32, 3, 1, 1), 2, width % 2, width == 17);
    CheckBack<BFloat>(Shape(5, width, 32, 32, 3, 1, 1), 2, width == 30);
  }
  for (const size_t padding : {0, 1, 2, 4}) {
    CheckForward<BFloat>(Shape(9, 8, 64, 32, 5, 1, padding), 1, false, false);
    CheckBack<BFloat>(Shape(9, 8, 32, 64, 5, 1, padding), 1, false);
    CheckForward<BFloat>(Shape(9, 8, 32, 32, 2, 1, padding), 1, false, false);
    CheckBack<BFloat>(Shape(9, 8, 32, 32, 2, 1, padding), 1, false);
  }
}

TEST_P(ImageProductTest, StridesAgreeWithPlainLoops) {
  for (const size_t stride : {2, 3}) {
    for (const size_t kernel : {1, 2, 3, 5}) {
      for (const size_t size : {11, 12, 13}) {
        const ConvShape s = Shape(size, size + 1, 32, 64, kernel, stride, kernel / 2);
        CheckForward<BFloat>(s, 2, false, false);
        CheckBack<BFloat>(s, 2, size == 13);
      }
    }
  }
}

// So few channels that the kernel's lines are taps; from floats as well.
TEST_P(ImageProductTest, LinesOfTapsAgreeWithPlainLoops) {
  for (const size_t in : {1, 3, 9}) {
    for (const auto& [kernel, stride] : {std::pair(7, 2), std::pair(3, 1), std::pair(4, 4)}) {
      const ConvShape s = Shape(17, 22, in, 64, size_t(kernel), size_t(stride), size_t(kernel) / 2);
      if (!ConvolvesImages(*GetParam(), s)) continue;
      CheckForward<float>(s, 2, in == 1, in == 3);
      CheckForward<BFloat>(s, 2, false, false);
    }
  }
  CheckForward<BFloat>(Shape(5, 5, 40, 32, 1, 1, 0), 2, false, false);
}

TEST_P(ImageProductTest, FloatsAreRoundedOnTheWay) {
  CheckForward<float>(Shape(6, 7, 32, 32, 1, 1, 0), 2, false, false);
  CheckForward<float>(Shape(6, 7, 32, 32, 3, 1, 1), 2, false, false);
  CheckBack<float>(Shape(6, 7, 32, 32, 1, 1, 0), 2, false);
  CheckBack<float>(Shape(7, 8, 32, 32, 3, 2, 1), 2, false);
}

// More than the second cache holds: images in bands of lines, and several images at once.
TEST_P(ImageProductTest, BandsAndGroupsAgreeWithPlainLoops) {
  CheckForward<BFloat>(Shape(61, 180, 32, 32, 3, 1, 1), 1, false, false);
  CheckBack<BFloat>(Shape(62, 181, 32, 128, 3, 2, 1), 1, false);
  CheckForward<BFloat>(Shape(63, 181, 32, 32, 3, 2, 1), 1, false, false);
  CheckForward<BFloat>(Shape(5, 5, 64, 64, 3, 1, 1), 23, false, false);
  CheckForward<BFloat>(Shape(3, 3, 256, 256, 3, 1, 1), 7, false, false);  // of many weights
  CheckForward<float>(Shape(200, 600, 3, 32, 3, 1, 1), 1, false, false);
}

// Odd numbers of channels, and images of so few pixels that tiles would be empty.
TEST_P(ImageProductTest, OtherShapesAreLeftToPatches) {
  const MatrixUnit& unit = *GetParam();
  EXPECT_FALSE(ConvolvesImages(unit, Shape(8, 8, 32, 40, 3, 1, 1)));
  EXPECT_FALSE(ConvolvesImages(unit, Shape(8, 8, 40, 32, 3, 1, 1)));
  EXPECT_FALSE(ConvolvesImages(unit, Shape(2, 2, 64, 64, 3, 1, 1)));
  EXPECT_FALSE(ConvolvesImagesBack(unit, Shape(8, 8, 3, 64, 7, 2, 3)));
  EXPECT_FALSE(ConvolvesImagesBack(unit, Shape(8, 8, 64, 40, 3, 1, 1)));
}

std::vector<const MatrixUnit*> UnitsWithImages() {
  std::vector<const MatrixUnit*> units = UnitsHere();
  std::erase_if(units, [](const MatrixUnit* unit) { return !unit->images; });
  return units;
}

TEST(ImageProduct, UnitsWithoutItLeaveAllToPatches) {
  for (const MatrixUnit* unit : AllMatrixUnits()) {
    MatrixUnit plain = *unit;
    plain.images = nullptr;
    EXPECT_FALSE(ConvolvesImages(plain, Shape(8, 8, 32, 32, 3, 1, 1)));
    EXPECT_FALSE(ConvolvesImagesBack(plain, Shape(8, 8, 32, 32, 3, 1, 1)));
  }
  if (UnitsWithImages().empty()) GTEST_SKIP() << "no unit of this machine takes images as they lie";
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ImageProductTest);
INSTANTIATE_TEST_SUITE_P(All, ImageProductTest, testing::ValuesIn(UnitsWithImages()), UnitText);

}  // namespace
}  // namespace trireme::cpu::bf16
