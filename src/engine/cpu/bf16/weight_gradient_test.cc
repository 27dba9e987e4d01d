// Weight gradients by kernels of the units' own. Small whole numbers: every sum is exact.
#include "engine/cpu/bf16/weight_gradient.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <vector>

#include "base/random.h"
#include "engine/cpu/bf16/units_here.h"
#include "hwy/aligned_allocator.h"

namespace trireme::cpu {
namespace {

ConvShape Make(size_t height, size_t width, size_t in, size_t out, size_t kernel, size_t stride,
               size_t padding) {
  const auto outputs = [&](size_t size) { return (size + 2 * padding - kernel) / stride + 1; };
  return {.height = height,
          .width = width,
          .in = in,
          .out_height = outputs(height),
          .out_width = outputs(width),
          .out = out,
          .kernel = kernel,
          .stride = stride,
          .padding = padding};
}

struct Case {
  ConvShape shape;
  size_t samples;
  bool wide = false;  // x in float32
};

std::ostream& operator<<(std::ostream& to, const Case& c) {
  const ConvShape& s = c.shape;
  return to << c.samples << " images of " << s.height << " x " << s.width << " x " << s.in << " to "
            << s.out << ", kernel " << s.kernel << ", stride " << s.stride << ", padding "
            << s.padding;
}

// Odd sizes, one step and many, one part and several, more channels before and behind.
const Case kCases[] = {
    {Make(1, 1, 32, 64, 1, 1, 0), 1},     // one pixel
    {Make(1, 1, 96, 32, 1, 1, 0), 300},   //
    {Make(7, 9, 64, 32, 1, 1, 0), 3},     //
    {Make(7, 9, 64, 96, 1, 2, 0), 5},     //
    {Make(13, 11, 64, 32, 1, 1, 0), 50},  // parts
    {Make(61, 53, 32, 32, 1, 1, 0), 1},   // short chunks
    {Make(35, 35, 32, 64, 1, 1, 0), 2},   // chunks
    {Make(7, 9, 64, 32, 3, 1, 1), 3},     //
    {Make(8, 8, 32, 32, 3, 1, 0), 5},     //
    {Make(9, 7, 32, 64, 3, 2, 1), 5},     //
    {Make(10, 12, 32, 32, 3, 2, 1), 2},   //
    {Make(9, 7, 32, 64, 3, 1, 2), 2},     //
    {Make(8, 9, 32, 64, 3, 2, 0), 3},     //
    {Make(13, 12, 64, 32, 5, 2, 2), 2},   //
    {Make(13, 12, 32, 32, 2, 1, 0), 2},   //
    {Make(11, 12, 32, 32, 7, 2, 3), 2},   //
    {Make(6, 6, 32, 32, 4, 1, 1), 1},     //
    {Make(95, 97, 32, 32, 3, 1, 1), 1},   // parts
    {Make(60, 60, 32, 32, 2, 2, 0), 9},   // parts
    {Make(60, 60, 128, 32, 2, 2, 0), 4},  // stretches
    {Make(23, 29, 3, 32, 7, 2, 3), 2, true}, {Make(24, 22, 4, 64, 7, 2, 3), 1, true},
    {Make(9, 8, 3, 32, 3, 1, 1), 2, true},   {Make(9, 11, 10, 32, 3, 2, 0), 2, true},
    {Make(95, 97, 1, 32, 5, 1, 2), 1, true},  // parts
};

std::vector<BFloat> Numbers(size_t size, uint64_t stream) {
  const Random random(stream);
  std::vector<BFloat> all(size);
  for (size_t i = 0; i < size; ++i) {
    all[i] = BFloat(std::bit_cast<uint32_t>(float(int(random.Bits(i) % 5) - 2)) >> 16);
  }
  return all;
}

int Whole(BFloat x) { return int(std::bit_cast<float>(uint32_t{x} << 16)); }

std::vector<float> Expected(const Case& c, const std::vector<BFloat>& x,
                            const std::vector<BFloat>& dy) {
  const ConvShape& s = c.shape;
  std::vector<int> sums(s.kernel * s.kernel * s.in * s.out), of_y(s.out);
  for (size_t pixel = 0; pixel < c.samples * s.out_pixels(); ++pixel) {
    const size_t sample = pixel / s.out_pixels();
    const size_t row = pixel / s.out_width % s.out_height, column = pixel % s.out_width;
    for (size_t j = 0; j < s.out; ++j) of_y[j] = Whole(dy[pixel * s.out + j]);
    for (size_t tap = 0; tap < s.kernel * s.kernel; ++tap) {
      const size_t at_y = row * s.stride + tap / s.kernel - s.padding;  // wraps to large ones
      const size_t at_x = column * s.stride + tap % s.kernel - s.padding;
      if (at_y >= s.height || at_x >= s.width) continue;
      for (size_t i = 0; i < s.in; ++i) {
        const int value = Whole(x[((sample * s.height + at_y) * s.width + at_x) * s.in + i]);
        int* to = sums.data() + (tap * s.in + i) * s.out;
        for (size_t j = 0; j < s.out; ++j) to[j] += value * of_y[j];
      }
    }
  }
  return {sums.begin(), sums.end()};
}

class WeightGradientTest : public testing::TestWithParam<const MatrixUnit*> {
 protected:
  // What is not written must not be read: scratch holds no numbers at first.
  static std::vector<float> Run(const WeightGradientKernels& kernels, const Case& c,
                                const std::vector<BFloat>& x, const std::vector<BFloat>& dy,
                                int threads, std::vector<float> dw, bool add) {
    Team team(threads);
    constexpr size_t kBehind = 32;
    const size_t size = kernels.scratch(c.shape, c.samples, size_t(threads));
    const auto scratch = hwy::AllocateAligned<BFloat>(size + kBehind);
    std::fill_n(scratch.get(), size + kBehind, BFloat(0x7fc0));
    std::vector<float> wide;
    for (const BFloat value : x) wide.push_back(std::bit_cast<float>(uint32_t{value} << 16));
    kernels.run({.shape = c.shape,
                 .samples = c.samples,
                 .x = c.wide ? nullptr : x.data(),
                 .wide_x = c.wide ? wide.data() : nullptr,
                 .dy = dy.data(),
                 .dw = dw.data(),
                 .add = add},
                scratch.get(), team);
    for (size_t i = 0; i < kBehind; ++i) EXPECT_EQ(scratch[size + i], 0x7fc0) << c;
    return dw;
  }
};

TEST_P(WeightGradientTest, IsExactOnWholeNumbers) {
  std::set<const WeightGradientKernels*> used;
  if (GetParam()->weight_gradients.empty()) GTEST_SKIP() << "the unit has no kernels of its own";
  for (const Case& c : kCases) {
    const WeightGradientKernels* kernels = FindWeightGradient(*GetParam(), c.shape, c.wide);
    ASSERT_NE(kernels, nullptr) << c;
    used.insert(kernels);
    const auto x = Numbers(c.samples * c.shape.in_pixels() * c.shape.in, 1);
    const auto dy = Numbers(c.samples * c.shape.out_pixels() * c.shape.out, 2);
    std::vector<float> want = Expected(c, x, dy);
    const std::vector<float> nothing(want.size(), std::bit_cast<float>(0x7fc00000u));
    for (const int threads : {1, 2, 5}) {
      ASSERT_EQ(Run(*kernels, c, x, dy, threads, nothing, false), want) << c << ", " << threads;
    }
    std::vector<float> before(want.size());
    for (size_t i = 0; i < want.size(); ++i) want[i] += before[i] = float(i % 7);
    ASSERT_EQ(Run(*kernels, c, x, dy, 2, before, true), want) << c;
  }
  EXPECT_EQ(used.size(), GetParam()->weight_gradients.size());
}

// Sums that are rounded.
TEST_P(WeightGradientTest, ThreadsDoNotChangeABit) {
  if (GetParam()->weight_gradients.empty()) GTEST_SKIP() << "the unit has no kernels of its own";
  for (const Case& c : kCases) {
    const WeightGradientKernels* kernels = FindWeightGradient(*GetParam(), c.shape, c.wide);
    ASSERT_NE(kernels, nullptr) << c;
    auto x = Numbers(c.samples * c.shape.in_pixels() * c.shape.in, 1);
    auto dy = Numbers(c.samples * c.shape.out_pixels() * c.shape.out, 2);
    const Random random(3);
    for (size_t i = 0; i < x.size(); ++i) x[i] ^= BFloat(random.Bits(i) % 0x1ff);
    for (size_t i = 0; i < dy.size(); ++i) dy[i] ^= BFloat(random.Bits(~i) % 0x1ff);
    const ConvShape& s = c.shape;
    for (const bool add : {false, true}) {
      const std::vector<float> before(s.kernel * s.kernel * s.in * s.out, 0.1f);
      const auto one = Run(*kernels, c, x, dy, 1, before, add);
      for (const int threads : {2, 3, 4}) {
        ASSERT_EQ(one, Run(*kernels, c, x, dy, threads, before, add)) << c << ", " << threads;
      }
    }
  }
}

// What a kernel does not take goes the way of all units.
TEST_P(WeightGradientTest, OddChannelsAndTinyImagesAreNotTaken) {
  for (const ConvShape& s : {Make(8, 8, 40, 64, 1, 1, 0), Make(8, 8, 64, 40, 3, 1, 1),
                             Make(1, 1, 64, 64, 3, 1, 1), Make(9, 9, 32, 32, 3, 3, 1)}) {
    for (const bool wide : {false, true}) {
      EXPECT_EQ(FindWeightGradient(*GetParam(), s, wide), nullptr) << Case{s, 1};
    }
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(WeightGradientTest);
INSTANTIATE_TEST_SUITE_P(All, WeightGradientTest, testing::ValuesIn(UnitsHere()), UnitText);

}  // namespace
}  // namespace trireme::cpu
