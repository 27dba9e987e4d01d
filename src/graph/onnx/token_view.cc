#include "graph/onnx/token_view.h"

#include <algorithm>

#include "graph/onnx/node_context.h"

namespace trireme {
namespace {

using Of = OnnxFactor::Of;

OnnxAxis AxisOf(Of of, int64_t extent, int64_t stride = 1) {
  if (of != Of::kSamples && extent == 1) return {};
  return {{of, extent, stride}};
}

// Neighbours along one dimension are one factor again.
OnnxAxis Joined(const OnnxAxis& axis) {
  OnnxAxis joined;
  for (const OnnxFactor& factor : axis) {
    if (!joined.empty() && factor.of != Of::kSamples && joined.back().of == factor.of &&
        joined.back().stride == factor.stride * factor.extent) {
      joined.back().extent *= factor.extent;
      joined.back().stride = factor.stride;
    } else {
      joined.push_back(factor);
    }
  }
  return joined;
}

bool IsAll(const OnnxAxis& axis, Of of, int64_t extent) {
  return Joined(axis) == AxisOf(of, extent);
}

// Takes factors of an axis that is `wanted` long from the front, or from the back, of all that are
// left; splits one where needed.
std::optional<OnnxAxis> Fill(std::vector<OnnxFactor>& left, const OnnxNumber& wanted, bool back) {
  OnnxAxis axis;
  int64_t rest = wanted.value;
  if (rest < 1) return {};
  bool samples = wanted.samples;
  // A single sample goes with the axis that begins there.
  const auto single = [&] {
    return !back && axis.empty() && !left.empty() && left.front() == OnnxFactor{Of::kSamples, 1};
  };
  while (rest > 1 || samples || single()) {
    if (left.empty()) return {};
    OnnxFactor& next = back ? left.back() : left.front();
    OnnxFactor taken = next;
    bool whole = true;
    if (next.of == Of::kSamples) {
      const bool fixed = next.extent > 0 && rest % next.extent == 0;
      if (!samples && !fixed) return {};
      if (!samples) rest /= next.extent;
      samples = false;
    } else if (rest % next.extent == 0 && rest > 1) {
      rest /= next.extent;
    } else if (rest > 1 && next.extent % rest == 0) {
      whole = false;
      const int64_t other = next.extent / rest;
      taken.extent = rest;
      if (back) {
        next.stride *= rest;
      } else {
        taken.stride *= other;
      }
      next.extent = other;
      rest = 1;
    } else {
      return {};
    }
    axis.insert(back ? axis.begin() : axis.end(), taken);
    if (whole) left.erase(back ? left.end() - 1 : left.begin());
  }
  return axis;
}

}  // namespace

TokenView TokenView::OfImage(const Shape& shape, int64_t samples) {
  return {
      .shape = shape,
      .axes = {AxisOf(Of::kSamples, samples), AxisOf(Of::kChannels, shape.channels),
               AxisOf(Of::kTokens, shape.height, shape.width), AxisOf(Of::kTokens, shape.width)}};
}

TokenView TokenView::OfTokens(const Shape& shape, int64_t samples) {
  TokenView view{.shape = shape};
  view.axes = {AxisOf(Of::kSamples, samples), AxisOf(Of::kTokens, view.tokens()),
               AxisOf(Of::kChannels, shape.channels)};
  return view;
}

bool TokenView::IsSamples(size_t axis) const {
  return axes[axis].size() == 1 && axes[axis][0].of == Of::kSamples;
}
bool TokenView::IsTokens(size_t axis) const { return IsAll(axes[axis], Of::kTokens, tokens()); }
bool TokenView::IsChannels(size_t axis) const {
  return first_channel == 0 && IsAll(axes[axis], Of::kChannels, shape.channels);
}

bool TokenView::IsPlain() const {
  return axes.size() == 3 && IsSamples(0) && IsTokens(1) && IsChannels(2);
}

bool TokenView::IsWhole() const {
  int64_t size = 1;
  bool samples = false;
  for (const OnnxAxis& axis : axes) {
    for (const OnnxFactor& factor : axis) {
      if (factor.of == Of::kSamples) samples = true;
      if (factor.of != Of::kSamples) size *= factor.extent;
    }
  }
  return samples && size == shape.size();
}

OnnxNumber TokenView::Extent(size_t axis) const {
  OnnxNumber number{1, false};
  for (const OnnxFactor& factor : axes[axis]) {
    if (factor.of == Of::kSamples) {
      number.samples = true;
    } else {
      number.value *= factor.extent;
    }
  }
  return number;
}

bool TokenView::Reshape(const std::vector<OnnxNumber>& wanted, bool zero_copies) {
  std::vector<OnnxFactor> left;
  for (const OnnxAxis& axis : axes) left.insert(left.end(), axis.begin(), axis.end());
  std::vector<OnnxNumber> numbers = wanted;
  size_t open = numbers.size();
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i].value == 0 && !numbers[i].samples && zero_copies && i < axes.size()) {
      numbers[i] = Extent(i);
    }
    if (numbers[i].value != -1 || numbers[i].samples) continue;
    if (open < numbers.size()) return false;
    open = i;
  }
  std::vector<OnnxAxis> made(numbers.size());
  for (size_t i = 0; i < open; ++i) {
    const auto axis = Fill(left, numbers[i], false);
    if (!axis) return false;
    made[i] = *axis;
  }
  for (size_t i = numbers.size(); i > open + 1; --i) {
    const auto axis = Fill(left, numbers[i - 1], true);
    if (!axis) return false;
    made[i - 1] = *axis;
  }
  if (open < numbers.size()) {
    made[open] = left;
  } else if (!left.empty()) {
    return false;
  }
  std::ranges::transform(made, made.begin(), Joined);
  // A single sample before all channels goes with what comes before them, as several would.
  for (size_t i = 1; i < made.size(); ++i) {
    if (made[i].size() != 2 || made[i][0] != OnnxFactor{Of::kSamples, 1} ||
        !IsAll({made[i][1]}, Of::kChannels, shape.channels)) {
      continue;
    }
    made[i - 1].push_back(made[i][0]);
    made[i].erase(made[i].begin());
  }
  axes = std::move(made);
  return true;
}

bool TokenView::Transpose(const std::vector<int64_t>& order) {
  if (order.size() != axes.size()) return false;
  std::vector<OnnxAxis> made;
  std::vector<bool> seen(axes.size());
  for (const int64_t from : order) {
    if (from < 0 || from >= int64_t(axes.size()) || seen[size_t(from)]) return false;
    seen[size_t(from)] = true;
    made.push_back(axes[size_t(from)]);
  }
  axes = std::move(made);
  return true;
}

bool TokenView::Take(size_t axis, int64_t first, int64_t count) {
  const OnnxAxis joined = Joined(axes[axis]);
  if (joined.size() != 1 || joined[0].of != Of::kChannels) return false;
  const OnnxFactor factor = joined[0];
  // Indices of a file may be any: `first` + `count` may overflow.
  const int64_t most = factor.extent - count;
  if (first < 0 || count < 1 || first > most) return false;
  first_channel += first * factor.stride;
  axes[axis] = AxisOf(Of::kChannels, count, factor.stride);
  return true;
}

TokenView TokenView::Of(const Shape& other) const {
  TokenView same = *this;
  same.shape = other;
  for (OnnxAxis& axis : same.axes) {
    if (IsAll(axis, Of::kChannels, shape.channels)) axis = AxisOf(Of::kChannels, other.channels);
  }
  return same;
}

}  // namespace trireme
