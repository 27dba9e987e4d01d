// The operations that compute no value of the network: they name values, or say their shapes.
#include <algorithm>

#include "graph/onnx/node_context.h"

namespace trireme {
namespace {

using Kind = OnnxOperand::Kind;

OnnxOperand NumbersOf(std::vector<OnnxNumber> numbers) {
  return {.kind = Kind::kNumbers, .numbers = std::move(numbers)};
}

OnnxOperand Identity(NodeContext& c) { return c.Input(0); }

OnnxOperand Cast(NodeContext& c) {
  constexpr int64_t kFloats[] = {1, 10, 11, 16};
  const OnnxOperand& x = c.Input(0);
  const bool number =
      c.Flows(0) || x.kind == Kind::kReal || (x.kind == Kind::kTensor && x.tensor->holds_floats());
  if (number && std::ranges::find(kFloats, c.Int("to", 1)) == std::end(kFloats)) {
    RefuseNode("to integers");
  }
  return x;
}

OnnxOperand Constant(NodeContext& c) {
  const auto& attributes = c.node().attributes;
  if (const auto tensor = attributes.find("value");
      tensor != attributes.end() && tensor->second.tensor) {
    return {.kind = Kind::kTensor, .tensor = &*tensor->second.tensor};
  }
  if (const auto one = attributes.find("value_int"); one != attributes.end()) {
    OnnxOperand number = NumbersOf({{one->second.integer.value_or(0)}});
    number.single = true;
    return number;
  }
  if (const auto several = attributes.find("value_ints"); several != attributes.end()) {
    std::vector<OnnxNumber> numbers;
    for (const int64_t number : several->second.integers) numbers.push_back({number});
    return NumbersOf(std::move(numbers));
  }
  RefuseNode("neither a tensor nor integers");
}

// A range of a list as ONNX counts it: from the end where a number is below 0, cut to what is
// there.
std::pair<size_t, size_t> RangeOf(int64_t begin, int64_t end, size_t size) {
  const auto length = int64_t(size);
  const auto place = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + length : at, 0, length);
  };
  return {size_t(place(begin)), size_t(std::max(place(begin), place(end)))};
}

OnnxOperand ShapeOf(NodeContext& c) {
  const OnnxOperand& x = c.Input(0);
  if (x.kind != Kind::kData) RefuseNode("of a constant");
  std::vector<OnnxNumber> numbers = {{1, true}};
  for (const int64_t extent : c.Raw(0).extents) numbers.push_back({extent});
  const auto [begin, end] =
      RangeOf(c.Int("start", 0), c.Int("end", int64_t(numbers.size())), numbers.size());
  return NumbersOf({numbers.begin() + int64_t(begin), numbers.begin() + int64_t(end)});
}

// What is computed of data is not known before the network runs.
void NeedNumbers(NodeContext& c, size_t input, const char* what) {
  if (c.Flows(input)) RefuseNode("{} values of the network", what);
}

OnnxOperand Gather(NodeContext& c) {
  NeedNumbers(c, 0, "picks");
  if (c.Int("axis", 0) != 0) RefuseNode("axis {}", c.Int("axis", 0));
  const std::vector<OnnxNumber> all = c.Numbers(0);
  std::vector<OnnxNumber> taken;
  for (int64_t at : c.Plain(1)) {
    at += at < 0 ? int64_t(all.size()) : 0;
    if (at < 0 || at >= int64_t(all.size())) RefuseNode("takes number {} of {}", at, all.size());
    taken.push_back(all[size_t(at)]);
  }
  return NumbersOf(std::move(taken));
}

OnnxOperand Concat(NodeContext& c) {
  std::vector<OnnxNumber> all;
  for (size_t i = 0; i < c.node().inputs.size(); ++i) {
    NeedNumbers(c, i, "joins");
  }
  for (size_t i = 0; i < c.node().inputs.size(); ++i) {
    for (const OnnxNumber& number : c.Numbers(i)) all.push_back(number);
    if (all.size() > 64) RefuseNode("makes a shape of {} numbers", all.size());
  }
  return NumbersOf(std::move(all));
}

struct Slices {
  std::vector<int64_t> starts, ends, axes, steps;
};

Slices ReadSlices(NodeContext& c, size_t rank) {
  Slices s;
  if (c.opset() < 10) {
    s = {c.Ints("starts"), c.Ints("ends"), c.Ints("axes"), {}};
  } else {
    s = {c.Plain(1), c.Plain(2), {}, {}};
    if (c.reads(3)) s.axes = c.Plain(3);
    if (c.reads(4)) s.steps = c.Plain(4);
  }
  for (size_t i = 0; s.axes.size() < s.starts.size(); ++i) s.axes.push_back(int64_t(i));
  s.steps.resize(std::max(s.steps.size(), s.starts.size()), 1);
  if (s.ends.size() != s.starts.size() || s.axes.size() != s.starts.size() ||
      s.steps.size() != s.starts.size()) {
    RefuseNode("{} starts and {} ends", s.starts.size(), s.ends.size());
  }
  for (int64_t& axis : s.axes) axis += axis < 0 ? int64_t(rank) : 0;
  return s;
}

OnnxOperand SliceOfNumbers(NodeContext& c) {
  const std::vector<OnnxNumber> all = c.Numbers(0);
  const Slices s = ReadSlices(c, 1);
  if (s.starts.size() != 1 || s.axes[0] != 0 || s.steps[0] != 1) RefuseNode("of a shape, by steps");
  const auto [begin, end] = RangeOf(s.starts[0], s.ends[0], all.size());
  return NumbersOf({all.begin() + int64_t(begin), all.begin() + int64_t(end)});
}

// Every second pixel, say: what comes behind it says which layer that is.
OnnxOperand Slice(NodeContext& c) {
  if (c.Input(0).kind != Kind::kData) return SliceOfNumbers(c);
  OnnxOperand x = c.Raw(0);
  const Slices s = ReadSlices(c, x.extents.size() + 1);
  for (size_t i = 0; i < s.starts.size(); ++i) {
    const int64_t axis = s.axes[i], step = s.steps[i];
    if (axis < 1 || axis > int64_t(x.extents.size())) RefuseNode("along axis {}", axis);
    int64_t& extent = x.extents[size_t(axis) - 1];
    if (s.starts[i] != 0 || s.ends[i] < extent) {
      RefuseNode("a part of axis {}, from {} to {}", axis, s.starts[i], s.ends[i]);
    }
    if (step == 1) continue;
    if (!x.image() || axis < 2 || step < 1 || step > 1024) {
      RefuseNode("steps of {} along axis {}", step, axis);
    }
    if (x.step_h == 1 && x.step_w == 1) x.flattened = c.Raw(0).shape();
    int& taken = axis == 2 ? x.step_h : x.step_w;
    if (taken != 1) RefuseNode("steps along axis {} twice", axis);
    taken = int(step);
    extent = (extent - 1) / step + 1;
  }
  return x;
}

OnnxOperand Squeeze(NodeContext& c) {
  if (!c.Flows(0)) return c.Input(0);
  const OnnxOperand x = c.Image(0);
  const std::vector<int64_t> axes = c.Axes(1, 4);
  if ((!axes.empty() && axes != std::vector<int64_t>{2, 3}) || x.extents[1] != 1 ||
      x.extents[2] != 1) {
    RefuseNode("of {}; only height and width of 1 together", ExtentsText(x.extents));
  }
  return c.Flatten(x);
}

// A row as an image of one pixel: the order of its values is then that of channels.
OnnxOperand AsPixel(const OnnxOperand& row) {
  if (row.flattened.height != 1 || row.flattened.width != 1) {
    RefuseNode("makes one pixel of an image of {}", ToText(row.flattened));
  }
  return row.As({row.extents[0], 1, 1});
}

OnnxOperand Unsqueeze(NodeContext& c) {
  if (!c.Flows(0)) return c.Input(0);
  const OnnxOperand x = c.Data(0);
  const auto axes = c.Axes(1, x.extents.size() + 2);
  if (x.extents.size() == 2 && axes == std::vector<int64_t>{1}) {
    return x.As({1, x.extents[0], x.extents[1]});
  }
  if (!x.row() || c.Axes(1, 4) != std::vector<int64_t>{2, 3}) {
    RefuseNode("of {}; only height and width behind a row", ExtentsText(x.extents));
  }
  return AsPixel(x);
}

OnnxOperand Transpose(NodeContext& c) {
  std::vector<int64_t> order = c.Ints("perm");
  const bool still = !order.empty() && std::ranges::is_sorted(order);
  if (c.Flows(0) && !still) {
    RefuseNode("changes the order of axes{}{}", order.empty() ? "" : " to ", ExtentsText(order));
  }
  OnnxOperand x = c.Input(0);
  if (still) return x;
  if (x.kind != Kind::kTensor || x.tensor->shape().size() != 2) {
    RefuseNode("of a constant that is no matrix");
  }
  x.turned = !x.turned;
  return x;
}

OnnxOperand Flatten(NodeContext& c) {
  const OnnxOperand x = c.Data(0);
  const int64_t axis = c.Int("axis", 1);
  if (axis != 1 && axis != -int64_t(x.extents.size())) RefuseNode("axis {}", axis);
  return c.Flatten(x);
}

// The extents behind the samples that a reshape asks for; the samples must stay apart.
std::vector<int64_t> Target(NodeContext& c, const OnnxOperand& x) {
  const std::vector<OnnxNumber> wanted = c.Numbers(1);
  const int64_t size = x.shape().size();
  if (wanted.size() < 2) RefuseNode("joins the samples");
  int64_t product = 1;
  std::vector<int64_t> extents;
  int open = -1;
  for (size_t i = 1; i < wanted.size(); ++i) {
    int64_t extent = wanted[i].value;
    if (wanted[i].samples) RefuseNode("moves the samples");
    if (extent == 0 && c.Int("allowzero", 0) == 0 && i <= x.extents.size()) {
      extent = x.extents[i - 1];
    }
    if (extent == -1 && open < 0) {
      open = int(i) - 1;
    } else if (extent < 1 || extent > size || product > size) {
      RefuseNode("an extent of {}", extent);
    } else {
      product *= extent;
    }
    extents.push_back(extent);
  }
  const bool samples_open = wanted[0].value == -1 && !wanted[0].samples;
  if (open >= 0) {
    if (samples_open || product == 0 || size % product != 0) RefuseNode("two open extents");
    extents[size_t(open)] = size / product;
    product = size;
  }
  const bool kept = samples_open || (wanted[0].value == 0 && c.Int("allowzero", 0) == 0) ||
                    c.IsSamples(wanted[0]);
  if (!kept || product != size) {
    RefuseNode("makes {} for each {} of {}", ExtentsText(extents),
               kept ? "sample" : "sample, of another number,", ExtentsText(x.extents));
  }
  return extents;
}

OnnxOperand Reshape(NodeContext& c) {
  const OnnxOperand x = c.Data(0);
  const std::vector<int64_t> extents = Target(c, x);
  if (extents == x.extents) return x;
  if (extents.size() == 1) return c.Flatten(x);
  const bool pixel = extents.size() == 3 && extents[1] == 1 && extents[2] == 1;
  if (pixel && x.row()) return AsPixel(x);
  if (x.extents.size() == 2 && extents.size() == 3 && extents[0] == 1 &&
      extents[1] == x.extents[0]) {
    return x.As(extents);
  }
  RefuseNode("makes {} of {}", ExtentsText(extents), ExtentsText(x.extents));
}

constexpr NodeRow kRows[] = {
    {"Cast", Cast},     {"Concat", Concat},     {"Constant", Constant},   {"Flatten", Flatten},
    {"Gather", Gather}, {"Identity", Identity}, {"Reshape", Reshape},     {"Shape", ShapeOf},
    {"Slice", Slice},   {"Squeeze", Squeeze},   {"Transpose", Transpose}, {"Unsqueeze", Unsqueeze},
};

}  // namespace

std::span<const NodeRow> ShapeRows() { return kRows; }

}  // namespace trireme
