#include "engine/cpu/bf16/tap_plan.h"

#include <algorithm>

namespace trireme::cpu::bf16 {
namespace {

constexpr size_t kMostIn = 4096;

size_t Even(size_t n) { return (n + 1) / 2 * 2; }

// Where taps of a row are joined, none is left along x.
TapAxis AlongX(const ConvShape& s, bool joined) {
  if (joined) return {1, 1, 0, s.out_width, s.out_width};
  return {s.kernel, s.stride, s.padding, s.width, s.out_width};
}

}  // namespace

TapAxis::TapAxis(size_t kernel, size_t stride, size_t padding, size_t in, size_t out)
    : kernel_(kernel), stride_(stride), padding_(padding), in_(in), out_(out) {}

size_t TapAxis::Pixels(size_t phase) const {
  return phase < in_ ? (in_ - phase + stride_ - 1) / stride_ : 0;
}

// So many that no shift takes pixels of x to places of dy that are another row's pixels.
size_t TapAxis::Places() const {
  ptrdiff_t places = ptrdiff_t(out_);
  for (size_t tap = 0; tap < kernel_; ++tap) {
    const ptrdiff_t pixels = ptrdiff_t(Pixels(Phase(tap))), shift = Shift(tap);
    places = std::max({places, pixels, pixels - shift, ptrdiff_t(out_) + shift});
  }
  return size_t(places);
}

bool TapPlan::Takes(const ConvShape& s, bool joined) {
  if (s.kernel < 2 || s.kernel > kMostKernel || s.stride > kMostStride || s.padding >= s.kernel ||
      s.out % kBlock != 0) {
    return false;
  }
  if (joined ? s.kernel * s.in > kBlock : s.in % kBlock != 0 || s.in > kMostIn) return false;
  // On tiny images most places would be zeros.
  return TapPlan(s, 1, joined).places() <= 3 * s.out_pixels();
}

TapPlan::TapPlan(const ConvShape& s, size_t count, bool rows_joined)
    : shape(s),
      samples(count),
      joined(rows_joined),
      y(s.kernel, s.stride, s.padding, s.height, s.out_height),
      x(AlongX(s, joined)),
      grid_rows(y.Places()),
      // An even number of columns: shifts by rows are even.
      grid_columns(joined ? Even(x.Places()) : x.Places()),
      row_values(joined ? s.kernel * s.in : s.in),
      row_blocks((row_values + kBlock - 1) / kBlock),
      column_blocks(s.out / kBlock) {
  for (size_t tap_y = 0; tap_y < s.kernel; ++tap_y) {
    for (size_t tap_x = 0; tap_x < (joined ? 1 : s.kernel); ++tap_x) {
      AddTap(y.Phase(tap_y), x.Phase(tap_x),
             y.Shift(tap_y) * ptrdiff_t(grid_columns) + x.Shift(tap_x));
    }
  }
  head = Even(head);
}

void TapPlan::AddTap(size_t phase_y, size_t phase_x, ptrdiff_t shift) {
  size_t phase = 0;
  while (phase < num_phases && (phases[phase].y != phase_y || phases[phase].x != phase_x)) ++phase;
  if (phase == num_phases) phases[num_phases++] = {phase_y, phase_x};
  taps[num_taps++] = {phase, shift};
  head = size_t(std::max(ptrdiff_t(head), shift));
  tail = size_t(std::max(ptrdiff_t(tail), -shift));
  (shift % 2 == 0 ? has_even : has_odd) = true;
}

size_t TapPlan::Lines(size_t length) const { return Even(head + length + tail) + 2; }

size_t TapPlan::TableValues(size_t length) const {
  return WholeSteps(Lines(length) * sizeof(BFloat*) / sizeof(BFloat));
}

size_t TapPlan::Most(size_t blocks) const {
  const size_t each = (num_phases * blocks + 2) * kBlock;
  return std::max(kBlock, kCachedValues / each / kBlock * kBlock);
}

size_t TapPlan::ThreadValues() const {
  const size_t all = WholeSteps(places()), each = (num_phases * row_blocks + 2) * kBlock;
  const size_t longest = std::min(all, Most(1));
  return std::min(each * all, std::max(kCachedValues, each * kBlock)) + ColumnValues(0) +
         TableValues(longest) + WholeSteps(std::max(shape.in, shape.out));
}

}  // namespace trireme::cpu::bf16
