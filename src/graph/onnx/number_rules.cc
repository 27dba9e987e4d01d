// Numbers that are computed of shapes and constants while a file is read.
#include <algorithm>
#include <cmath>

#include "graph/onnx/node_context.h"

namespace trireme {
namespace {

using Kind = OnnxOperand::Kind;
using Numbers = std::vector<OnnxNumber>;

constexpr size_t kMostNumbers = 64;

OnnxOperand Unknown() { return {}; }
OnnxOperand NumbersOf(Numbers numbers) {
  return {.kind = Kind::kNumbers, .numbers = std::move(numbers)};
}
OnnxOperand RealOf(double real) {
  if (!std::isfinite(real)) RefuseNode("makes {}", real);
  return {.kind = Kind::kReal, .real = real};
}

bool HasIntegers(NodeContext& c, size_t input) {
  if (c.Flows(input)) return false;
  const OnnxOperand& value = c.Input(input);
  return value.kind == Kind::kNumbers ||
         (value.kind == Kind::kTensor && value.tensor->holds_integers());
}

// As many of each: a single one counts for all.
OnnxOperand Pairwise(NodeContext& c, OnnxNumber (*of)(const OnnxNumber&, const OnnxNumber&)) {
  if (!HasIntegers(c, 0) || !HasIntegers(c, 1)) return Unknown();
  const Numbers a = c.Numbers(0), b = c.Numbers(1);
  const size_t size = std::max(a.size(), b.size());
  const bool fits = a.size() == b.size() || a.size() == 1 || b.size() == 1;
  if (a.empty() || b.empty() || size > kMostNumbers || !fits) {
    RefuseNode("of {} and {} numbers", a.size(), b.size());
  }
  Numbers made;
  for (size_t i = 0; i < size; ++i) {
    made.push_back(of(a[a.size() == 1 ? 0 : i], b[b.size() == 1 ? 0 : i]));
  }
  return NumbersOf(std::move(made));
}

constexpr double kMostValue = 1e12;
int64_t Bounded(int64_t value) {
  if (std::abs(double(value)) > kMostValue) RefuseNode("of {}", value);
  return value;
}
void RefuseSamples(const OnnxNumber& a, const OnnxNumber& b) {
  if (a.samples || b.samples) RefuseNode("of the number of samples");
}

OnnxOperand Mul(NodeContext& c) {
  return Pairwise(c, [](const OnnxNumber& a, const OnnxNumber& b) {
    if (a.samples && b.samples) RefuseNode("multiplies the number of samples by itself");
    if (std::abs(double(a.value) * double(b.value)) > kMostValue) RefuseNode("makes too much");
    return OnnxNumber{a.value * b.value, a.samples || b.samples};
  });
}

OnnxOperand Add(NodeContext& c) {
  return Pairwise(c, [](const OnnxNumber& a, const OnnxNumber& b) {
    RefuseSamples(a, b);
    return OnnxNumber{Bounded(a.value) + Bounded(b.value)};
  });
}

OnnxOperand Sub(NodeContext& c) {
  return Pairwise(c, [](const OnnxNumber& a, const OnnxNumber& b) {
    RefuseSamples(a, b);
    return OnnxNumber{Bounded(a.value) - Bounded(b.value)};
  });
}

OnnxOperand Mod(NodeContext& c) {
  return Pairwise(c, [](const OnnxNumber& a, const OnnxNumber& b) {
    RefuseSamples(a, b);
    if (b.value < 1 || a.value < 0) RefuseNode("of {} by {}", a.value, b.value);
    return OnnxNumber{a.value % b.value};
  });
}

OnnxOperand Equal(NodeContext& c) {
  return Pairwise(c, [](const OnnxNumber& a, const OnnxNumber& b) { return OnnxNumber{a == b}; });
}

OnnxOperand Div(NodeContext& c) {
  if (HasIntegers(c, 0) && HasIntegers(c, 1)) {
    return Pairwise(c, [](const OnnxNumber& a, const OnnxNumber& b) {
      if (b.samples || b.value < 1 || a.value % b.value != 0) {
        RefuseNode("of {} by {}", a.value, b.value);
      }
      return OnnxNumber{a.value / b.value, a.samples};
    });
  }
  const auto a = c.Real(0), b = c.Real(1);
  if (!a || !b) return Unknown();
  return RealOf(*a / *b);
}

OnnxOperand Sqrt(NodeContext& c) {
  const auto x = c.Real(0);
  if (!x) RefuseNode("of what is no constant number");
  return RealOf(std::sqrt(*x));
}

OnnxOperand Where(NodeContext& c) {
  const Numbers which = c.Numbers(0), yes = c.Numbers(1), no = c.Numbers(2);
  if (which.size() != yes.size() || which.size() != no.size()) {
    RefuseNode("of {}, {} and {} numbers", which.size(), yes.size(), no.size());
  }
  Numbers made;
  for (size_t i = 0; i < which.size(); ++i) made.push_back(which[i].value ? yes[i] : no[i]);
  return NumbersOf(std::move(made));
}

OnnxOperand ConstantOfShape(NodeContext& c) {
  const std::vector<int64_t> shape = c.Plain(0);
  if (shape.size() != 1 || shape[0] < 0 || shape[0] > int64_t(kMostNumbers)) {
    RefuseNode("makes more than some numbers");
  }
  int64_t value = 0;
  const auto found = c.node().attributes.find("value");
  if (found != c.node().attributes.end() && found->second.tensor) {
    if (!found->second.tensor->holds_integers()) RefuseNode("makes no integers");
    const auto values = found->second.tensor->Integers(1);
    if (values.size() == 1) value = values[0];
  }
  return NumbersOf(Numbers(size_t(shape[0]), {value}));
}

// What has an order of its own here, and numbers, in one row.
OnnxOperand ShapeOf(NodeContext& c) {
  if (!c.Flows(0) && HasIntegers(c, 0)) return NumbersOf({{int64_t(c.Numbers(0).size())}});
  const OnnxOperand& x = c.Input(0);
  if (x.kind != Kind::kView) return Unknown();
  Numbers numbers;
  for (size_t i = 0; i < x.view.axes.size(); ++i) numbers.push_back(x.view.Extent(i));
  const auto place = [&](int64_t at) {
    const auto size = int64_t(numbers.size());
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  };
  const int64_t begin = place(c.Int("start", 0)),
                end = place(c.Int("end", int64_t(numbers.size())));
  return NumbersOf({numbers.begin() + begin, numbers.begin() + std::max(begin, end)});
}

OnnxOperand Reshape(NodeContext& c) {
  if (!HasIntegers(c, 0)) return Unknown();
  if (c.Plain(1).size() > 1) RefuseNode("of numbers that are no row");
  return NumbersOf(c.Numbers(0));
}

constexpr NodeRow kRows[] = {
    {"Add", Add},       {"ConstantOfShape", ConstantOfShape},
    {"Div", Div},       {"Equal", Equal},
    {"Mod", Mod},       {"Mul", Mul},
    {"Sqrt", Sqrt},     {"Reshape", Reshape},
    {"Shape", ShapeOf}, {"Sub", Sub},
    {"Where", Where},
};

}  // namespace

std::span<const NodeRow> NumberRows() { return kRows; }

}  // namespace trireme
