// Transformers: what exporters write between the layers of tokens, where heads, queries and keys
// have axes of their own, until they are attention; and what is done for each token.
#include <algorithm>
#include <cmath>

#include "graph/onnx/node_context.h"
#include "graph/op.h"

namespace trireme {
namespace {

using Kind = OnnxOperand::Kind;
using Of = OnnxFactor::Of;

constexpr double kClose = 1e-5;   // numbers in files are rounded
constexpr size_t kMostAxes = 16;  // far above what is used; nodes of a few bytes may add many

bool IsAbout(double a, double b) { return std::abs(a - b) <= kClose * std::abs(b); }

// What an operand is for layers: an image of all tokens.
OnnxOperand AsLayer(const OnnxOperand& view) {
  const Shape& s = view.view.shape;
  return DataOf(view.value, {s.channels, s.height, s.width});
}

OnnxOperand ViewOf(int value, TokenView view) {
  OnnxOperand operand{.kind = Kind::kView, .value = value};
  operand.view = std::move(view);
  return operand;
}

// A view that is an image or a row, as those; tokens in one row, as a layer makes it.
OnnxOperand Simplified(NodeContext& c, OnnxOperand x) {
  const TokenView& view = x.view;
  if (view.axes.size() > kMostAxes) RefuseNode("makes {} axes", view.axes.size());
  if (x.multiplied || !view.IsWhole()) return x;
  const Shape& s = view.shape;
  const auto& axes = view.axes;
  if (axes.size() == 4 && axes == TokenView::OfImage(s, c.samples()).axes) return AsLayer(x);
  if (axes.size() != 2 || !view.IsSamples(0)) return x;
  if (view.IsChannels(1)) return DataOf(x.value, {s.channels});
  TokenView flat = view;
  if (!flat.Reshape({{1, true}, {view.tokens()}, {s.channels}}, false) || !flat.IsPlain()) return x;
  OnnxOperand row = c.Add("flatten", {}, {AsLayer(x)});
  row.extents = {s.size()};
  row.flattened = {.channels = int(s.size())};
  // A dense layer behind it has files with the channels first.
  row.in_order = true;
  row.token_rows = {.height = s.channels, .channels = int(view.tokens())};
  return row;
}

// What a layer made of an image, as its axes; nothing: its values have no such order here.
std::optional<OnnxOperand> Viewed(NodeContext& c, size_t input) {
  const OnnxOperand& x = c.Input(input);
  if (x.kind == Kind::kView) return x;
  if (x.kind != Kind::kData || x.value == 0 || x.multiplied || x.softmax) return {};
  if (x.step_h != 1 || x.step_w != 1 || x.extents.size() == 2) return {};
  if (x.row() && (x.in_order || x.flattened.height != 1 || x.flattened.width != 1)) return {};
  TokenView view = TokenView::OfImage(x.shape(), c.samples());
  if (x.row()) view.axes.resize(2);
  return ViewOf(x.value, std::move(view));
}

// A layer behind a view, whose values stand as before.
OnnxOperand Behind(NodeContext& c, const OnnxOperand& x, std::string_view op,
                   const Attributes& attributes, const std::vector<OnnxOperand>& tensors = {}) {
  if (x.multiplied) RefuseNode("reads what {} multiplies", x.multiplied->Label());
  if (!x.view.IsWhole()) RefuseNode("reads a part of the channels");
  const OnnxOperand made = c.Add(op, attributes, {AsLayer(x)}, tensors);
  Shape shape = x.view.shape;
  shape.channels = int(made.extents[0]);
  return ViewOf(made.value, x.view.Of(shape));
}

// ---- the order of axes

OnnxOperand Reshape(NodeContext& c) {
  if (!c.Flows(0)) return {};
  const bool is_view = c.Input(0).kind == Kind::kView;
  const auto x = Viewed(c, 0);
  if (!x || (!is_view && !c.Input(0).image())) return {};
  const std::vector<OnnxNumber> wanted = c.Numbers(1);
  if (!is_view && (wanted.size() != 3 || x->view.tokens() == 1)) return {};
  OnnxOperand made = *x;
  if (!made.view.Reshape(wanted, c.Int("allowzero", 0) == 0)) {
    if (!is_view) return {};
    RefuseNode("cuts tokens or channels otherwise than into heads");
  }
  return Simplified(c, std::move(made));
}

OnnxOperand Transpose(NodeContext& c) {
  if (!c.Flows(0)) return {};
  const auto x = Viewed(c, 0);
  if (!x) return {};
  OnnxOperand made = *x;
  if (!made.view.Transpose(c.Ints("perm"))) return {};
  return Simplified(c, std::move(made));
}

OnnxOperand Flatten(NodeContext& c) {
  if (!c.Flows(0) || c.Input(0).kind != Kind::kView) return {};
  OnnxOperand made = c.Input(0);
  if (c.Int("axis", 1) != 1) RefuseNode("axis {}", c.Int("axis", 1));
  if (!made.view.Reshape({made.view.Extent(0), {-1}}, true)) RefuseNode("of such an order");
  return Simplified(c, std::move(made));
}

std::vector<int64_t> AxesOf(NodeContext& c, size_t rank) {
  return c.reads(1) || !c.Ints("axes").empty() ? c.Axes(1, rank) : std::vector<int64_t>();
}

OnnxOperand Unsqueeze(NodeContext& c) {
  if (!c.Flows(0)) return {};
  const auto x = Viewed(c, 0);
  if (!x) return {};
  const size_t more = c.reads(1) ? c.Plain(1).size() : c.Ints("axes").size();
  const std::vector<int64_t> axes = AxesOf(c, x->view.axes.size() + more);
  const bool row = c.Input(0).kind == Kind::kData;
  if (row && (!c.Input(0).row() || axes == std::vector<int64_t>{2, 3})) return {};
  OnnxOperand made = *x;
  for (const int64_t axis : axes) {
    if (axis < 0 || axis > int64_t(made.view.axes.size())) RefuseNode("axis {}", axis);
    made.view.axes.insert(made.view.axes.begin() + axis, OnnxAxis());
  }
  return Simplified(c, std::move(made));
}

OnnxOperand Squeeze(NodeContext& c) {
  if (!c.Flows(0) || c.Input(0).kind != Kind::kView) return {};
  OnnxOperand made = c.Input(0);
  const std::vector<int64_t> axes = AxesOf(c, made.view.axes.size());
  if (axes.empty()) RefuseNode("without axes");
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (*axis < 0 || *axis >= int64_t(made.view.axes.size()) ||
        !made.view.axes[size_t(*axis)].empty()) {
      RefuseNode("axis {}", *axis);
    }
    made.view.axes.erase(made.view.axes.begin() + *axis);
  }
  return Simplified(c, std::move(made));
}

// The first of all tokens alone, with an axis of 1 for it.
std::optional<OnnxOperand> FirstToken(NodeContext& c, const OnnxOperand& x, int64_t axis) {
  if (axis != 1 || x.multiplied || !x.view.IsPlain()) return {};
  const OnnxOperand made = c.Add("first_token", {}, {AsLayer(x)});
  TokenView view = TokenView::OfTokens({.channels = x.view.shape.channels}, c.samples());
  return ViewOf(made.value, std::move(view));
}

OnnxOperand TakeOf(NodeContext& c, const OnnxOperand& x, int64_t axis, int64_t first,
                   int64_t count) {
  const auto rank = int64_t(x.view.axes.size());
  axis += axis < 0 ? rank : 0;
  if (axis < 0 || axis >= rank) RefuseNode("axis {}", axis);
  if (first == 0 && count == 1) {
    if (auto token = FirstToken(c, x, axis)) return *token;
  }
  OnnxOperand made = x;
  if (!made.view.Take(size_t(axis), first, count)) {
    RefuseNode("takes {} from {} on of axis {}", count, first, axis);
  }
  return made;
}

OnnxOperand Gather(NodeContext& c) {
  if (!c.Flows(0) || c.Input(0).kind != Kind::kView) return {};
  const OnnxOperand x = c.Input(0);
  int64_t axis = c.Int("axis", 0);
  axis += axis < 0 ? int64_t(x.view.axes.size()) : 0;
  const std::vector<int64_t> places = c.Plain(1);
  if (axis < 0 || axis >= int64_t(x.view.axes.size()) || places.size() != 1) {
    RefuseNode("picks {} places of axis {}", places.size(), axis);
  }
  const OnnxNumber extent = x.view.Extent(size_t(axis));
  if (extent.samples) RefuseNode("picks samples");
  const int64_t place = places[0] + (places[0] < 0 ? extent.value : 0);
  OnnxOperand made = TakeOf(c, x, axis, place, 1);
  const OnnxOperand& index = c.Input(1);
  const bool tensor = index.kind == Kind::kTensor;
  const size_t rank = tensor ? index.tensor->shape().size() : index.single ? 0 : 2;
  if (rank > 1) RefuseNode("picks by what may be no single number");
  if (rank == 0) made.view.axes.erase(made.view.axes.begin() + axis);
  return Simplified(c, std::move(made));
}

OnnxOperand Slice(NodeContext& c) {
  if (!c.Flows(0) || c.Input(0).kind != Kind::kView) return {};
  const OnnxOperand x = c.Input(0);
  const bool old = c.opset() < 10;
  const std::vector<int64_t> starts = old ? c.Ints("starts") : c.Plain(1);
  const std::vector<int64_t> ends = old ? c.Ints("ends") : c.Plain(2);
  std::vector<int64_t> axes = old ? c.Ints("axes") : std::vector<int64_t>();
  if (!old && c.reads(3)) axes = c.Plain(3);
  if (!old && c.reads(4) && c.Plain(4) != std::vector<int64_t>(starts.size(), 1)) {
    RefuseNode("of tokens by steps");
  }
  for (size_t i = axes.size(); i < starts.size(); ++i) axes.push_back(int64_t(i));
  if (ends.size() != starts.size() || axes.size() != starts.size()) RefuseNode("uneven lists");
  OnnxOperand made = x;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t axis = axes[i] + (axes[i] < 0 ? int64_t(made.view.axes.size()) : 0);
    if (axis < 0 || axis >= int64_t(made.view.axes.size())) RefuseNode("axis {}", axis);
    const OnnxNumber extent = made.view.Extent(size_t(axis));
    const auto place = [&](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? at + extent.value : at, 0, extent.value);
    };
    // For the end of a free axis exporters write one of the largest numbers that there are.
    const bool all_samples =
        ends[i] >= INT32_MAX || (c.samples() > 0 && ends[i] / extent.value >= c.samples());
    if (starts[i] == 0 && (extent.samples ? all_samples : ends[i] >= extent.value)) continue;
    if (extent.samples) RefuseNode("of the samples");
    made = TakeOf(c, made, axis, place(starts[i]), place(ends[i]) - place(starts[i]));
  }
  return Simplified(c, std::move(made));
}

// ---- products

OnnxOperand DenseFor(NodeContext& c, const OnnxOperand& x, OnnxOperand weight, bool turned,
                     const std::vector<OnnxOperand>& bias) {
  weight.turned ^= turned;
  const auto& shape = weight.tensor->shape();
  if (shape.size() != 2) RefuseNode("weights with {} axes, not 2", shape.size());
  const int64_t out = shape[weight.turned ? 1 : 0], in = shape[weight.turned ? 0 : 1];
  if (x.view.axes.empty() || !x.view.IsChannels(x.view.axes.size() - 1) ||
      in != x.view.shape.channels || out < 1 || out > (1 << 20)) {
    RefuseNode("weights {} for such tokens", ExtentsText(shape));
  }
  std::vector<OnnxOperand> tensors = {std::move(weight)};
  tensors.insert(tensors.end(), bias.begin(), bias.end());
  const Attributes attributes{.channels = int(out), .bias = !bias.empty(), .tokens = true};
  return Behind(c, x, "dense", attributes, tensors);
}

// What stands before the last two axes of queries, keys and values: samples and heads.
bool IsHeads(const TokenView& view, int64_t heads, int64_t each) {
  std::vector<OnnxFactor> factors;
  for (size_t i = 0; i + 2 < view.axes.size(); ++i) {
    factors.insert(factors.end(), view.axes[i].begin(), view.axes[i].end());
  }
  const auto is_heads = [&](const OnnxFactor& f) {
    return f == OnnxFactor{Of::kChannels, heads, each};
  };
  const bool all = std::ranges::all_of(
      factors, [&](const OnnxFactor& f) { return f.of == Of::kSamples || is_heads(f); });
  return all && factors.size() == (heads > 1 ? 2u : 1u) &&
         std::ranges::count_if(factors, is_heads) == (heads > 1 ? 1 : 0);
}

bool SameHeads(const TokenView& a, const TokenView& b) {
  return a.axes.size() == b.axes.size() && a.axes.size() >= 3 &&
         std::equal(a.axes.begin(), a.axes.end() - 2, b.axes.begin());
}

// Whether an axis holds the channels of a head.
bool IsHead(const TokenView& view, size_t axis, int64_t each) {
  const OnnxAxis wanted = each == 1 ? OnnxAxis() : OnnxAxis{{Of::kChannels, each, 1}};
  return view.axes[axis] == wanted;
}

OnnxOperand Scores(const OnnxOperand& q, const OnnxOperand& k) {
  const size_t rank = q.view.axes.size();
  const int64_t channels = q.view.shape.channels;
  if (q.value != k.value || !SameHeads(q.view, k.view) || channels % 3 != 0 || q.erf_taken ||
      k.erf_taken) {
    RefuseNode("multiplies two values of the network");
  }
  const OnnxAxis& last = q.view.axes[rank - 1];
  const int64_t width = channels / 3, each = last.empty() ? 1 : last[0].extent;
  const bool fits = width % each == 0 && IsHead(q.view, rank - 1, each) &&
                    IsHead(k.view, rank - 2, each) && q.view.IsTokens(rank - 2) &&
                    k.view.IsTokens(rank - 1) && IsHeads(q.view, width / each, each) &&
                    q.view.first_channel == 0 && k.view.first_channel == width;
  if (!fits) RefuseNode("is no product of all queries and all keys of one layer, head by head");
  OnnxOperand scores = q;
  scores.kind = Kind::kScores;
  scores.heads = width / each;
  scores.factor = q.factor * k.factor;
  scores.multiplied = nullptr;
  return scores;
}

OnnxOperand Attention(NodeContext& c, const OnnxOperand& shares, const OnnxOperand& v) {
  const size_t rank = v.view.axes.size();
  const int64_t width = v.view.shape.channels / 3, each = width / shares.heads;
  if (!shares.shares || v.value != shares.value || !SameHeads(shares.view, v.view) ||
      !v.view.IsTokens(rank - 2) || !IsHead(v.view, rank - 1, each) ||
      v.view.first_channel != 2 * width || v.multiplied) {
    RefuseNode("is no product of a softmax and all values of the same layer");
  }
  const OnnxOperand made = c.Add("attention", {.heads = int(shares.heads)}, {AsLayer(v)});
  TokenView view = v.view;
  view.shape.channels = int(width);
  view.first_channel = 0;
  return ViewOf(made.value, std::move(view));
}

OnnxOperand MatMul(NodeContext& c) {
  if (!c.Flows(0)) return {};
  const OnnxOperand a = c.Input(0);
  if (c.Flows(1)) {
    const OnnxOperand b = c.Input(1);
    if (a.kind == Kind::kScores && b.kind == Kind::kView) return Attention(c, a, b);
    if (a.kind == Kind::kView && b.kind == Kind::kView) return Scores(a, b);
    RefuseNode("multiplies two values of the network");
  }
  if (a.kind != Kind::kView) return {};
  return DenseFor(c, a, c.Tensor(1), true, {});
}

OnnxOperand Gemm(NodeContext& c) {
  if (!c.Flows(0) || c.Input(0).kind != Kind::kView) return {};
  if (c.Number("alpha", 1) != 1 || c.Number("beta", 1) != 1 || c.Int("transA", 0) != 0) {
    RefuseNode("of tokens with alpha, beta or transA");
  }
  std::vector<OnnxOperand> bias;
  if (c.reads(2)) bias.push_back(c.Tensor(2));
  return DenseFor(c, c.Input(0), c.Tensor(1), c.Int("transB", 0) == 0, bias);
}

OnnxOperand Softmax(NodeContext& c) {
  if (!c.Flows(0) || c.Input(0).kind != Kind::kScores) return {};
  OnnxOperand x = c.Input(0);
  const auto rank = int64_t(x.view.axes.size());
  const int64_t axis = c.Int("axis", c.opset() < 13 ? 1 : -1);
  if (x.shares || (axis != -1 && axis != rank - 1)) RefuseNode("axis {}", axis);
  const double each = double(x.view.shape.channels) / 3 / double(x.heads);
  if (!IsAbout(x.factor, 1 / std::sqrt(each))) {
    RefuseNode("of scores that are multiplied by {}, not by {}", x.factor, 1 / std::sqrt(each));
  }
  x.shares = true;
  x.multiplied = nullptr;
  return x;
}

// ---- sums

// All values stand alike.
bool StandAlike(const OnnxOperand& a, const OnnxOperand& b) {
  return a.view.axes == b.view.axes && a.view.shape == b.view.shape && a.extents == b.extents;
}

OnnxOperand AddConstant(NodeContext& c, size_t data, size_t constant) {
  OnnxOperand x = c.Input(data);
  if (x.kind == Kind::kErf && !x.erf_above && x.factor == 1 && c.Real(constant) == 1.0) {
    x.erf_above = true;
    return x;
  }
  if (x.kind != Kind::kView || x.multiplied) return {};
  const OnnxOperand tensor = c.Tensor(constant);
  const auto size = int64_t(tensor.tensor->size());
  if (size == x.view.shape.channels && x.view.IsChannels(x.view.axes.size() - 1) &&
      c.AddBias(AsLayer(x), 0, data, tensor)) {
    return x;
  }
  std::vector<int64_t> row = tensor.tensor->shape();
  while (row.size() > 2 && row[0] == 1) row.erase(row.begin());
  if (x.view.IsPlain() && row == std::vector{x.view.tokens(), int64_t{x.view.shape.channels}}) {
    return Behind(c, x, "position_embedding", {}, {tensor});
  }
  RefuseNode("adds a constant that is no layer's bias, nor a row for each token");
}

OnnxOperand Add(NodeContext& c) {
  const bool first = c.Flows(0), second = c.Flows(1);
  if (first != second) return AddConstant(c, first ? 0 : 1, first ? 1 : 0);
  if (!first) return {};
  const OnnxOperand a = c.Input(0), b = c.Input(1);
  if (a.kind != Kind::kView || b.kind != Kind::kView) return {};
  if (!StandAlike(a, b) || a.multiplied || b.multiplied || !a.view.IsWhole()) {
    RefuseNode("adds values that stand in other orders");
  }
  const OnnxOperand made = c.Add("add", {}, {AsLayer(a), AsLayer(b)});
  return ViewOf(made.value, a.view);
}

// ---- gelu: x (1 + erf(x / sqrt(2))) / 2, in some order

OnnxOperand Erf(NodeContext& c) {
  OnnxOperand x = c.Input(0);
  if ((x.kind != Kind::kData && x.kind != Kind::kView) || !x.multiplied || x.erf_taken ||
      !IsAbout(x.factor, std::sqrt(0.5))) {
    RefuseNode("of what is no x / sqrt(2)");
  }
  x.kind = Kind::kErf;
  x.factor = 1;
  return x;
}

// x, once the half that belongs to it is there.
OnnxOperand MaybeGelu(NodeContext& c, OnnxOperand x) {
  x.erf_taken = true;
  x.multiplied = &c.node();
  if (!IsAbout(x.factor, 0.5)) return x;
  x.erf_taken = false;
  x.factor = 1;
  x.multiplied = nullptr;
  return x.kind == Kind::kView ? Behind(c, x, "gelu", {}) : c.Add("gelu", {}, {x});
}

OnnxOperand Product(NodeContext& c, size_t data, double factor) {
  OnnxOperand x = c.Input(data);
  const bool network = x.kind == Kind::kData && x.value != 0 && !x.softmax;
  if (!network && x.kind != Kind::kView && x.kind != Kind::kScores && x.kind != Kind::kErf) {
    return {};
  }
  if (network) x = c.Complete(x);
  if (x.shares || !std::isfinite(factor)) RefuseNode("by {}", factor);
  x.factor *= factor;
  x.multiplied = &c.node();
  return x.erf_taken ? MaybeGelu(c, x) : x;
}

OnnxOperand Mul(NodeContext& c) {
  const bool first = c.Flows(0), second = c.Flows(1);
  if (first != second) {
    const auto factor = c.Real(first ? 1 : 0);
    return factor ? Product(c, first ? 0 : 1, *factor) : OnnxOperand();
  }
  if (!first) return {};
  OnnxOperand x = c.Input(0), erf = c.Input(1);
  if (x.kind == Kind::kErf) std::swap(x, erf);
  if (erf.kind != Kind::kErf) return {};
  const bool same = (x.kind == Kind::kData || x.kind == Kind::kView) && !x.erf_taken &&
                    x.value == erf.value && StandAlike(x, erf);
  if (!same || !erf.erf_above) RefuseNode("is no part of a gelu");
  x.factor *= erf.factor;
  return MaybeGelu(c, x);
}

OnnxOperand Div(NodeContext& c) {
  if (!c.Flows(0) || c.Flows(1)) return {};
  const auto by = c.Real(1);
  return by && *by != 0 ? Product(c, 0, 1 / *by) : OnnxOperand();
}

OnnxOperand Gelu(NodeContext& c) {
  const std::string_view how = c.Text("approximate");
  if (!how.empty() && how != "none") RefuseNode("approximated by {}", ShownOnnx(how));
  if (c.Input(0).kind == Kind::kView) return Behind(c, c.Input(0), "gelu", {});
  return c.Add("gelu", {}, {c.Data(0)});
}

// ---- tokens

OnnxOperand LayerNormalization(NodeContext& c) {
  if (!c.Flows(0) || c.Input(0).kind != Kind::kView) return {};
  const OnnxOperand x = c.Input(0), scale = c.Tensor(1);
  const auto rank = int64_t(x.view.axes.size());
  int64_t axis = c.Int("axis", -1);
  axis += axis < 0 ? rank : 0;
  if (axis != rank - 1 || !x.view.IsChannels(size_t(axis))) RefuseNode("axis {} of tokens", axis);
  Attributes attributes{.tokens = true, .epsilon = c.Number("epsilon", 1e-5f)};
  attributes.affine = c.reads(2) || int64_t(scale.tensor->size()) != x.view.shape.channels ||
                      !std::ranges::all_of(scale.tensor->Floats(), [](float s) { return s == 1; });
  if (!attributes.affine) return Behind(c, x, "layer_norm", attributes);
  return Behind(c, x, "layer_norm", attributes, {scale, c.reads(2) ? c.Tensor(2) : OnnxOperand{}});
}

OnnxOperand Expand(NodeContext& c) {
  OnnxOperand token = c.Tensor(0);
  const std::vector<OnnxNumber> wanted = c.Numbers(1);
  const auto& shape = token.tensor->shape();
  bool fits =
      wanted.size() == shape.size() && !shape.empty() && shape[0] == 1 && c.IsSamples(wanted[0]);
  for (size_t i = 1; fits && i < wanted.size(); ++i) {
    fits = !wanted[i].samples && (wanted[i].value == 1 || wanted[i].value == shape[i]);
  }
  if (!fits) RefuseNode("other than a tensor for each sample");
  token.expanded = true;
  return token;
}

OnnxOperand Concat(NodeContext& c) {
  const bool token_first = c.node().inputs.size() == 2 && !c.Flows(0) && c.Flows(1) &&
                           c.Input(0).kind == Kind::kTensor && c.Input(1).kind == Kind::kView;
  if (!token_first) return {};
  const OnnxOperand x = c.Input(1), token = c.Tensor(0);
  const int64_t axis = c.Int("axis", 0);
  if ((axis != 1 && axis != -2) || !x.view.IsPlain() || x.multiplied ||
      (!token.expanded && c.samples() != 1) ||
      int64_t(token.tensor->size()) != x.view.shape.channels) {
    RefuseNode("is no token before all others");
  }
  const OnnxOperand made = c.Add("class_token", {}, {AsLayer(x)}, {token});
  const Shape shape{.height = int(x.view.tokens()) + 1, .channels = x.view.shape.channels};
  return ViewOf(made.value, TokenView::OfTokens(shape, c.samples()));
}

OnnxOperand ReduceMean(NodeContext& c) {
  if (!c.Flows(0) || c.Input(0).kind != Kind::kView) return {};
  const OnnxOperand x = c.Input(0);
  if (c.Axes(1, x.view.axes.size()) != std::vector<int64_t>{1} || !x.view.IsPlain() ||
      x.multiplied) {
    RefuseNode("axes other than the tokens");
  }
  const OnnxOperand made = c.Add("global_average_pool", {}, {AsLayer(x)});
  const Shape shape{.channels = x.view.shape.channels};
  if (!c.Int("keepdims", 1)) return DataOf(made.value, {shape.channels});
  return ViewOf(made.value, TokenView::OfTokens(shape, c.samples()));
}

// What is done to each value: the rule for images, which sees all tokens as one.
OnnxOperand Elementwise(NodeContext& c) {
  if (!c.Flows(0) || c.Input(0).kind != Kind::kView) return {};
  const OnnxOperand x = c.Input(0);
  if (x.multiplied || !x.view.IsWhole()) RefuseNode("of a part of the channels");
  const auto rows = LayerRows();
  const auto row = std::ranges::find(rows, c.node().op, &NodeRow::op);
  OnnxOperand& slot = c.values()[c.node().inputs[0]];
  slot = AsLayer(x);
  OnnxOperand made;
  try {
    made = row->rule(c);
  } catch (...) {
    slot = x;
    throw;
  }
  slot = x;
  return ViewOf(made.value, x.view);
}

constexpr NodeRow kRows[] = {
    {"Add", Add},
    {"Concat", Concat},
    {"Div", Div},
    {"Dropout", Elementwise},
    {"Erf", Erf},
    {"Expand", Expand},
    {"Flatten", Flatten},
    {"Gather", Gather},
    {"Gelu", Gelu},
    {"Gemm", Gemm},
    {"LayerNormalization", LayerNormalization},
    {"MatMul", MatMul},
    {"Mul", Mul},
    {"ReduceMean", ReduceMean},
    {"Relu", Elementwise},
    {"Reshape", Reshape},
    {"Sigmoid", Elementwise},
    {"Slice", Slice},
    {"Softmax", Softmax},
    {"Squeeze", Squeeze},
    {"Tanh", Elementwise},
    {"Transpose", Transpose},
    {"Unsqueeze", Unsqueeze},
};

}  // namespace

std::span<const NodeRow> TokenRows() { return kRows; }

}  // namespace trireme
