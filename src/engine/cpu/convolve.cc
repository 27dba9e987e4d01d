// dense and conv2d: a dense layer is a convolution over images of one pixel, or of tokens. Thin and
// small ones are computed where they lie, the others through packed blocks.
#include <algorithm>
#include <type_traits>

#include "engine/cpu/bf16/image_product.h"
#include "engine/cpu/bf16/product.h"
#include "engine/cpu/bf16/weight_gradient.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/convolve.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/cpu/elementwise-inl.h"
#include "engine/cpu/pack-inl.h"
#include "engine/cpu/product-inl.h"
#include "engine/cpu/winograd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {
namespace {

ConvShape DenseShapeOf(const Value& x, const Value& y) {
  const size_t height = size_t(x.shape.height), width = size_t(x.shape.width);
  return {height, width, size_t(x.shape.channels), height, width, size_t(y.shape.channels), 1,
          1,      0};
}

// A product of so few rows reads each weight so few times that packing does not pay; nor does it
// when everything fits into the first cache, or when C is one vector wide and the second cache
// holds the rest.
bool IsThin(size_t rows, size_t depth, size_t columns) {
  const size_t most = columns <= kLanes ? 1024 * 1024 : 32 * 1024;
  return rows <= 8 || rows * depth * columns <= most;
}

// The same of a layer, which also has to hold all of its values in float32.
bool IsThin(const Call& call, const ConvShape& s, size_t rows, size_t depth, size_t columns) {
  const auto is_narrow = [](const Value& value) { return value.element == Element::kBFloat; };
  return s.dense() && IsThin(rows, depth, columns) &&
         std::ranges::none_of(call.inputs, is_narrow) &&
         std::ranges::none_of(call.outputs, is_narrow);
}

// Rows of weights from which dot products along them are faster than a transposed copy.
constexpr size_t kLongRow = 8 * kLanes;

template <class T>
PatchesOf<T> InputPatches(const ConvShape& s, const T* x) {
  const ptrdiff_t start = -static_cast<ptrdiff_t>(s.padding);
  return {.image = x,
          .height = ptrdiff_t(s.height),
          .width = ptrdiff_t(s.width),
          .channels = ptrdiff_t(s.in),
          .rows_y = s.out_height,
          .rows_x = s.out_width,
          .step = ptrdiff_t(s.stride),
          .first_y = start,
          .first_x = start,
          .tap_step = 1,
          .taps_y = s.kernel,
          .taps_x = s.kernel};
}

const float* WeightsOf(const Call& call, const Shard& shard) {
  return shard.state + call.parameters[0].begin;
}
const float* BiasOf(const Call& call, const Shard& shard) {
  return call.parameters[1].size ? shard.state + call.parameters[1].begin : nullptr;
}

// Whether a convolution to `to`, or its input gradient, is computed from images as they lie.
bool FromImages(const Call& call, const ConvShape& s, const Value& to) {
  return call.unit && to.element == Element::kBFloat && bf16::ConvolvesImages(*call.unit, s);
}
bool FromImagesBack(const Call& call, const ConvShape& s, const Value& to) {
  return call.unit && to.element == Element::kBFloat && bf16::ConvolvesImagesBack(*call.unit, s);
}

template <class From, class To>
void ForwardInBFloat(const ConvShape& s, const Call& call, const Shard& shard, bool relu) {
  const size_t rows = shard.count * s.out_pixels(), depth = s.kernel * s.kernel * s.in;
  To* y = call.outputs[0].as<To>();
  const Finish finish = {
      .bias = BiasOf(call, shard), .relu = relu, .stream = MayStream(y, rows * s.out, s.out)};
  BFloat* panels = reinterpret_cast<BFloat*>(shard.scratch);
  if constexpr (std::is_same_v<To, BFloat>) {
    if (FromImages(call, s, call.outputs[0])) {
      return bf16::ConvolveImages(*call.unit, s, shard.count, call.inputs[0].as<From>(),
                                  WeightsOf(call, shard), y, finish, panels, *shard.team);
    }
  }
  bf16::PackPanels(*call.unit, WeightsOf(call, shard), depth, s.out, panels, *shard.team);
  bf16::MultiplyPatches(*call.unit, InputPatches(s, call.inputs[0].as<From>()), rows, panels, s.out,
                        PlacesOf<To>{y, s.out_pixels() * s.out, s.out_width * s.out, s.out}, finish,
                        panels + bf16::PanelScratch(*call.unit, depth, s.out), *shard.team);
}

// Whether a product is computed in bf16. Thin ones and Winograd are not, so what they read and
// write is float32.
bool InBFloat(const Call& call, const ConvShape& s, bool thin) {
  return call.unit && !s.winograd && !thin;
}

void Forward(const ConvShape& s, const Call& call, const Shard& shard, bool relu) {
  const size_t rows = shard.count * s.out_pixels(), depth = s.kernel * s.kernel * s.in;
  const bool thin = IsThin(call, s, rows, depth, s.out);
  if (InBFloat(call, s, thin)) {
    return WithElements(call.inputs[0], call.outputs[0], [&](auto from, auto to) {
      ForwardInBFloat<decltype(from), decltype(to)>(s, call, shard, relu);
    });
  }
  const float *weight = WeightsOf(call, shard), *bias = BiasOf(call, shard);
  const float* x = call.inputs[0].floats();
  float* y = call.outputs[0].floats();
  const Finish finish = {.bias = bias,
                         .relu = relu,
                         .stream = MayStream(y, shard.count * call.outputs[0].size(), s.out)};
  if (thin) {
    return MultiplyDirectly({x, s.in, 1}, rows, s.in, weight, s.out, y, finish, *shard.team);
  }
  if (s.winograd) {
    return WinogradForward(s.winograd, s, shard.count, x, weight, y, finish, shard.scratch,
                           *shard.team);
  }
  const Places places = {y, s.out_pixels() * s.out, s.out_width * s.out, s.out};
  MultiplyPatches(InputPatches(s, x), rows, {weight, s.out}, shard.scratch, places, finish,
                  shard.scratch + PanelScratch(depth, s.out), *shard.team);
}

// Floats of a product in bf16, of panels and of what threads have of their own.
size_t BFloatScratch(const MatrixUnit& unit, size_t rows, size_t depth, size_t columns,
                     size_t threads) {
  return (bf16::PanelScratch(unit, depth, columns) +
          bf16::MultiplyScratch(unit, rows, depth, columns, threads)) /
         2;
}

size_t ForwardScratch(const ConvShape& s, const Call& call, size_t samples, size_t threads) {
  const size_t rows = samples * s.out_pixels(), depth = s.kernel * s.kernel * s.in;
  if (IsThin(call, s, rows, depth, s.out)) return 0;
  if (s.winograd) return WinogradScratch(s.winograd, s, threads);
  if (FromImages(call, s, call.outputs[0])) {
    return bf16::ConvolveImagesScratch(*call.unit, s, samples, IsNarrow(call.inputs[0].element),
                                       threads) /
           2;
  }
  if (call.unit) return BFloatScratch(*call.unit, rows, depth, s.out, threads);
  return PanelScratch(depth, s.out) + MultiplyScratch(threads);
}

// Kernels that the unit has of its own for a weight gradient, or null.
const WeightGradientKernels* OwnGradWeights(const Call& call, const ConvShape& s, bool thin) {
  if (!InBFloat(call, s, thin) || call.inputs[1].element != Element::kBFloat) return nullptr;
  return FindWeightGradient(*call.unit, s, call.inputs[0].element != Element::kBFloat);
}

void GradWeights(const ConvShape& s, const Call& call, const Shard& shard) {
  float* dw = shard.summand + call.parameters[0].begin;
  const size_t rows = shard.count * s.out_pixels();
  const bool thin = IsThin(call, s, rows, s.in, s.out);
  const auto sum_rows = [&](const auto* dy) {
    if (!call.parameters[1].size) return;
    SumRows(dy, rows, s.out, shard.summand + call.parameters[1].begin, shard.accumulate,
            shard.scratch, *shard.team);
  };
  if (const WeightGradientKernels* own = OwnGradWeights(call, s, thin)) {
    const BFloat* dy = call.inputs[1].as<BFloat>();
    own->run({.shape = s,
              .samples = shard.count,
              .x = own->wide ? nullptr : call.inputs[0].as<BFloat>(),
              .wide_x = own->wide ? call.inputs[0].floats() : nullptr,
              .dy = dy,
              .dw = dw,
              .add = shard.accumulate},
             reinterpret_cast<BFloat*>(shard.scratch), *shard.team);
    return sum_rows(dy);
  }
  if (InBFloat(call, s, thin)) {
    return WithElements(call.inputs[0], call.inputs[1], [&](auto of_x, auto of_dy) {
      const auto* x = call.inputs[0].as<decltype(of_x)>();
      const auto* dy = call.inputs[1].as<decltype(of_dy)>();
      bf16::MultiplyTransposedPatches(*call.unit, InputPatches(s, x), rows, dy, s.out, dw,
                                      shard.accumulate, reinterpret_cast<BFloat*>(shard.scratch),
                                      *shard.team);
      sum_rows(dy);
    });
  }
  const float *x = call.inputs[0].floats(), *dy = call.inputs[1].floats();
  if (s.dense() && rows == 1 && shard.unwritten &&
      shard.unwritten->Take(call.parameters[0].begin, {x, s.in}, {dy, s.out})) {
    // Formed where it is used.
  } else if (s.dense() && HasFewColumns(rows, s.in, s.out)) {
    MultiplyTransposedFew(x, rows, s.in, dy, s.out, dw, shard.accumulate, shard.scratch,
                          *shard.team);
  } else if (thin) {
    MultiplyDirectly({x, 1, s.in}, s.in, rows, dy, s.out, dw, {.add = shard.accumulate},
                     *shard.team);
  } else if (s.winograd) {
    WinogradGradWeights(s.winograd, s, shard.count, x, dy, dw, shard.accumulate, shard.scratch,
                        *shard.team);
  } else {
    MultiplyTransposedPatches(InputPatches(s, x), rows, dy, s.out, dw, shard.accumulate,
                              shard.scratch, *shard.team);
  }
  sum_rows(dy);
}

size_t GradWeightsScratch(const ConvShape& s, const Call& call, size_t samples, size_t threads) {
  const size_t rows = samples * s.out_pixels(), depth = s.kernel * s.kernel * s.in;
  const size_t few = s.dense() ? MultiplyTransposedFewScratch(rows, s.in, s.out) : 0;
  const size_t sums = std::max(SumRowsScratch(rows, s.out), few);
  if (IsThin(call, s, rows, s.in, s.out)) return sums;
  if (s.winograd) {
    return std::max(sums, WinogradGradWeightsScratch(s.winograd, s, samples, threads));
  }
  if (const WeightGradientKernels* own = OwnGradWeights(call, s, false)) {
    return std::max(sums, own->scratch(s, samples, threads) / 2);
  }
  if (call.unit) {
    return std::max(sums,
                    bf16::MultiplyTransposedScratch(*call.unit, rows, depth, s.out, threads) / 2);
  }
  return std::max(sums, MultiplyTransposedScratch(rows, depth, s.out, threads));
}

template <class From, class To>
void GradInputPhase(const ConvShape& s, const Call& call, const GradPhase& py, const GradPhase& px,
                    const From* dy, To* dx, const Shard& shard, const float* positive) {
  const PatchesOf<From> patches = {.image = dy,
                                   .height = ptrdiff_t(s.out_height),
                                   .width = ptrdiff_t(s.out_width),
                                   .channels = ptrdiff_t(s.out),
                                   .rows_y = py.pixels,
                                   .rows_x = px.pixels,
                                   .step = 1,
                                   .first_y = ptrdiff_t(py.offset),
                                   .first_x = ptrdiff_t(px.offset),
                                   .tap_step = -1,
                                   .taps_y = py.taps,
                                   .taps_x = px.taps};
  const float* weight = WeightsOf(call, shard);
  const PlacesOf<To> places = {dx + (py.rest * s.width + px.rest) * s.in, s.in_pixels() * s.in,
                               s.stride * s.width * s.in, s.stride * s.in};
  const TapGrid taps = {py.first_tap, px.first_tap, s.stride, py.taps, px.taps, s.kernel};
  const Finish finish = {.stream = MayStream(dx, shard.count * s.in_pixels() * s.in, s.in)};
  const size_t rows = shard.count * py.pixels * px.pixels, depth = s.kernel * s.kernel * s.out;
  if (call.unit) {
    BFloat* panels = reinterpret_cast<BFloat*>(shard.scratch);
    bf16::PackTransposedPanels(*call.unit, weight, taps, s.out, s.in, panels, *shard.team);
    return bf16::MultiplyPatches(*call.unit, patches, rows, panels, s.in, places, finish,
                                 panels + bf16::PanelScratch(*call.unit, depth, s.in), *shard.team);
  }
  // Without a unit all values are float32.
  if constexpr (std::is_same_v<From, float> && std::is_same_v<To, float>) {
    MultiplyPatches(patches, rows, {weight, s.in, &taps}, shard.scratch, places, finish,
                    shard.scratch + PanelScratch(depth, s.in), *shard.team, positive);
  }
}

template <class From, class To>
void GradInputByPhases(const ConvShape& s, const Call& call, const Shard& shard,
                       const float* positive = nullptr) {
  const From* dy = call.inputs[0].as<From>();
  To* dx = call.outputs[0].as<To>();
  if (s.kernel < s.stride) std::fill_n(dx, shard.count * s.in_pixels() * s.in, To(0));
  for (size_t y = 0; y < std::min(s.stride, s.height); ++y) {
    for (size_t x = 0; x < std::min(s.stride, s.width); ++x) {
      const GradPhase py(y, s.height, s), px(x, s.width, s);
      if (py.taps * px.taps == 0) continue;  // no output sees these pixels
      GradInputPhase(s, call, py, px, dy, dx, shard, positive);
    }
  }
}

void GradInputFromImages(const ConvShape& s, const Call& call, const Shard& shard) {
  BFloat* dx = call.outputs[0].as<BFloat>();
  const Finish finish = {.stream = MayStream(dx, shard.count * s.in_pixels() * s.in, s.in)};
  WithElement(call.inputs[0], [&](auto from) {
    bf16::ConvolveImagesBack(*call.unit, s, shard.count, call.inputs[0].as<decltype(from)>(),
                             WeightsOf(call, shard), dx, finish,
                             reinterpret_cast<BFloat*>(shard.scratch), *shard.team);
  });
}

void GradInput(const ConvShape& s, const Call& call, const Shard& shard) {
  const float* weight = WeightsOf(call, shard);
  const float* dy = call.inputs[0].floats();
  float* dx = call.outputs[0].floats();
  if (IsThin(call, s, shard.count, s.out, s.in)) {
    if (s.out >= kLongRow) {
      return MultiplyTransposedDirectly(dy, shard.count, s.out, weight, s.in, dx, *shard.team);
    }
    Transpose(weight, s.out, s.in, s.out, shard.scratch, s.in);
    return MultiplyDirectly({dy, s.out, 1}, shard.count, s.out, shard.scratch, s.in, dx, {},
                            *shard.team);
  }
  if (s.winograd) {
    return WinogradGradInput(s.winograd, s, shard.count, dy, weight, dx, shard.scratch,
                             *shard.team);
  }
  if (FromImagesBack(call, s, call.outputs[0])) {
    return GradInputFromImages(s, call, shard);
  }
  WithElements(call.inputs[0], call.outputs[0], [&](auto from, auto to) {
    GradInputByPhases<decltype(from), decltype(to)>(s, call, shard);
  });
}

size_t GradInputScratch(const ConvShape& s, const Call& call, size_t samples, size_t threads) {
  // A shard of fewer samples may be thin where one of all is not, and turns all weights over.
  const size_t turned = s.dense() && s.out < kLongRow ? s.in * s.out : 0;
  if (IsThin(call, s, samples, s.out, s.in)) return turned;
  if (s.winograd) return WinogradScratch(s.winograd, s, threads);
  if (FromImagesBack(call, s, call.outputs[0])) {
    return bf16::ConvolveImagesBackScratch(*call.unit, s, samples, IsNarrow(call.inputs[0].element),
                                           threads) /
           2;
  }
  const size_t depth = s.kernel * s.kernel * s.out;
  const size_t packed =
      call.unit ? BFloatScratch(*call.unit, samples * s.in_pixels(), depth, s.in, threads)
                : PanelScratch(depth, s.in) + MultiplyScratch(threads);
  return std::max(turned, packed);
}

template <class F>
void DenseThen(const Call& call, const Shard& shard, const F& f) {
  Forward(DenseShapeOf(call.inputs[0], call.outputs[0]), call, shard, false);
  float* y = call.outputs[0].floats();
  ParallelFor(*shard.team, shard.count * call.outputs[0].size(), GrainFor(8),
              [&](size_t begin, size_t end) HWY_ATTR { Map(y, y, begin, end, f); });
}

ConvShape ForwardShape(const Call& call) {
  return ConvShapeOf(call.attributes, call.inputs[0].shape, call.outputs[0].shape);
}
ConvShape GradWeightsShape(const Call& call) {
  return ConvShapeOf(call.attributes, call.inputs[0].shape, call.inputs[1].shape);
}
ConvShape GradInputShape(const Call& call) {
  return ConvShapeOf(call.attributes, call.outputs[0].shape, call.inputs[0].shape);
}

}  // namespace

void Dense(const Call& call, const Shard& shard) {
  Forward(DenseShapeOf(call.inputs[0], call.outputs[0]), call, shard, false);
}
void DenseRelu(const Call& call, const Shard& shard) {
  Forward(DenseShapeOf(call.inputs[0], call.outputs[0]), call, shard, true);
}
void DenseSigmoid(const Call& call, const Shard& shard) {
  DenseThen(call, shard, [](V x) TRIREME_INLINED { return Logistic(x); });
}
void DenseTanh(const Call& call, const Shard& shard) {
  DenseThen(call, shard, [](V x) TRIREME_INLINED { return HyperbolicTangent(x); });
}
size_t DenseScratch(const Call& call, size_t samples, size_t threads) {
  return ForwardScratch(DenseShapeOf(call.inputs[0], call.outputs[0]), call, samples, threads);
}
void DenseGradWeights(const Call& call, const Shard& shard) {
  GradWeights(DenseShapeOf(call.inputs[0], call.inputs[1]), call, shard);
}
size_t DenseGradWeightsScratch(const Call& call, size_t samples, size_t threads) {
  return GradWeightsScratch(DenseShapeOf(call.inputs[0], call.inputs[1]), call, samples, threads);
}
void DenseGradInput(const Call& call, const Shard& shard) {
  GradInput(DenseShapeOf(call.outputs[0], call.inputs[0]), call, shard);
}
size_t DenseGradInputScratch(const Call& call, size_t samples, size_t threads) {
  return GradInputScratch(DenseShapeOf(call.outputs[0], call.inputs[0]), call, samples, threads);
}

// The relu's gradient is a part of storing dx, unless the product has a way of its own.
void DenseGradInputReluGrad(const Call& call, const Shard& shard) {
  const ConvShape s = DenseShapeOf(call.outputs[0], call.inputs[0]);
  if (!call.unit && !IsThin(call, s, shard.count, s.out, s.in)) {
    return GradInputByPhases<float, float>(s, call, shard, call.inputs[1].floats());
  }
  GradInput(s, call, shard);
  WithElements(call.inputs[1], call.outputs[0], [&](auto of_y, auto of_dx) {
    const auto* y = call.inputs[1].as<decltype(of_y)>();
    auto* dx = call.outputs[0].as<decltype(of_dx)>();
    ParallelFor(*shard.team, shard.count * call.outputs[0].size(), GrainFor(1),
                [&](size_t begin, size_t end) HWY_ATTR {
                  ForLanes(begin, end, [&](size_t i, size_t n) TRIREME_INLINED {
                    const auto passes = hn::Gt(LoadN(y + i, n), hn::Zero(Floats()));
                    StoreN(hn::IfThenElseZero(passes, LoadN(dx + i, n)), dx + i, n);
                  });
                });
  });
}

void Conv2d(const Call& call, const Shard& shard) {
  Forward(ForwardShape(call), call, shard, false);
}
void Conv2dRelu(const Call& call, const Shard& shard) {
  Forward(ForwardShape(call), call, shard, true);
}
size_t Conv2dScratch(const Call& call, size_t samples, size_t threads) {
  return ForwardScratch(ForwardShape(call), call, samples, threads);
}
void Conv2dGradWeights(const Call& call, const Shard& shard) {
  GradWeights(GradWeightsShape(call), call, shard);
}
size_t Conv2dGradWeightsScratch(const Call& call, size_t samples, size_t threads) {
  return GradWeightsScratch(GradWeightsShape(call), call, samples, threads);
}
void Conv2dGradInput(const Call& call, const Shard& shard) {
  GradInput(GradInputShape(call), call, shard);
}
size_t Conv2dGradInputScratch(const Call& call, size_t samples, size_t threads) {
  return GradInputScratch(GradInputShape(call), call, samples, threads);
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
