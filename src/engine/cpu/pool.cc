// max_pool, average_pool, global_average_pool. Gradients are gathered: each input pixel adds up the
// windows that cover it, so threads never write to the same place.
#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/pool.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/cpu/elementwise-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {
namespace {

struct Span {
  ptrdiff_t begin, end;
};

// Windows over one dimension.
struct Windows {
  ptrdiff_t kernel, stride, padding;
  explicit Windows(const Attributes& a) : kernel(a.kernel), stride(a.stride), padding(a.padding) {}

  ptrdiff_t first(ptrdiff_t window) const { return window * stride - padding; }
  Span pixels(ptrdiff_t window, ptrdiff_t size) const {
    return {std::max<ptrdiff_t>(first(window), 0), std::min(first(window) + kernel, size)};
  }
  Span covering(ptrdiff_t pixel, ptrdiff_t windows) const {
    const ptrdiff_t at = pixel + padding;
    return {at < kernel ? 0 : (at - kernel) / stride + 1, std::min(at / stride + 1, windows)};
  }
};

// Calls row(sample, y) for all rows of pixels of a value.
template <class F>
void ForPixelRows(const Shard& shard, const Shape& shape, size_t cost, const F& row) {
  const size_t height = size_t(shape.height);
  const size_t grain = 1 + GrainFor(cost) / size_t(shape.width * shape.channels);
  ParallelFor(*shard.team, shard.count * height, grain, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) row(i / height, ptrdiff_t(i % height));
  });
}

HWY_INLINE void StorePlaces(V places, uint8_t* to, size_t n) {
  const hn::Rebind<int32_t, Floats> ints;
  const hn::Rebind<uint8_t, Floats> bytes;
  const auto narrow = hn::DemoteTo(bytes, hn::ConvertTo(ints, places));
  if (n == kLanes) {
    hn::StoreU(narrow, bytes, to);
  } else {
    HWY_ALIGN uint8_t all[kLanes < 16 ? 16 : kLanes];
    hn::StoreU(narrow, bytes, all);
    std::memcpy(to, all, n);
  }
}

HWY_INLINE V LoadPlaces(const uint8_t* from, size_t n) {
  const hn::Rebind<int32_t, Floats> ints;
  const hn::Rebind<uint8_t, Floats> bytes;
  HWY_ALIGN uint8_t all[kLanes < 16 ? 16 : kLanes] = {};
  if (n < kLanes) {
    std::memcpy(all, from, n);
    from = all;
  }
  return hn::ConvertTo(Floats(), hn::PromoteTo(ints, hn::LoadU(bytes, from)));
}

// The first of equal maxima wins; what is not a number wins over numbers, so that it is noticed.
template <class T>
void TakeLargest(const Call& call, const Shard& shard) {
  const Shape &in = call.inputs[0].shape, &out = call.outputs[0].shape;
  const Windows w(call.attributes);
  const size_t channels = size_t(in.channels);
  ForPixelRows(shard, out, 16, [&](size_t sample, ptrdiff_t y) HWY_ATTR {
    const T* x_sample = call.inputs[0].as<T>() + sample * call.inputs[0].size();
    const size_t at = (sample * size_t(out.height) + size_t(y)) * size_t(out.width) * channels;
    T* value_row = call.outputs[0].as<T>() + at;
    uint8_t* place_row = call.outputs[1].bytes() + at;
    const Span ys = w.pixels(y, in.height);
    for (ptrdiff_t x = 0; x < out.width; ++x) {
      const Span xs = w.pixels(x, in.width);
      const auto place_of = [&](ptrdiff_t py, ptrdiff_t px) {
        return static_cast<float>((py - w.first(y)) * w.kernel + px - w.first(x));
      };
      ForLanes(0, channels, [&](size_t c, size_t n) TRIREME_INLINED {
        const auto load = [&](ptrdiff_t py, ptrdiff_t px) TRIREME_INLINED {
          return LoadN(x_sample + size_t(py * in.width + px) * channels + c, n);
        };
        V most = load(ys.begin, xs.begin);
        V place = hn::Set(Floats(), place_of(ys.begin, xs.begin));
        for (ptrdiff_t py = ys.begin; py < ys.end; ++py) {
          for (ptrdiff_t px = xs.begin; px < xs.end; ++px) {
            const V value = load(py, px);
            const auto better = hn::Or(hn::Gt(value, most), hn::IsNaN(value));
            most = hn::IfThenElse(better, value, most);
            place = hn::IfThenElse(better, hn::Set(Floats(), place_of(py, px)), place);
          }
        }
        StoreN(most, value_row + size_t(x) * channels + c, n);
        StorePlaces(place, place_row + size_t(x) * channels + c, n);
      });
    }
  });
}

// dx at each pixel and channel is the sum of term(window's offset, place in the window, n) over the
// windows that cover it.
template <class T, class F>
void GatherWindows(const Call& call, const Shard& shard, const Shape& out, const F& term) {
  const Shape& in = call.outputs[0].shape;
  const Windows w(call.attributes);
  const size_t channels = size_t(in.channels);
  ForPixelRows(shard, in, 8, [&](size_t sample, ptrdiff_t y) HWY_ATTR {
    T* row = call.outputs[0].as<T>() +
             (sample * size_t(in.height) + size_t(y)) * size_t(in.width) * channels;
    const Span ys = w.covering(y, out.height);
    for (ptrdiff_t x = 0; x < in.width; ++x) {
      const Span xs = w.covering(x, out.width);
      ForLanes(0, channels, [&](size_t c, size_t n) TRIREME_INLINED {
        V sum = hn::Zero(Floats());
        for (ptrdiff_t oy = ys.begin; oy < ys.end; ++oy) {
          for (ptrdiff_t ox = xs.begin; ox < xs.end; ++ox) {
            const size_t window = (sample * size_t(out.height) + size_t(oy)) * size_t(out.width);
            const ptrdiff_t place = (y - w.first(oy)) * w.kernel + x - w.first(ox);
            sum = hn::Add(sum, term((window + size_t(ox)) * channels + c, place, n));
          }
        }
        StoreN(sum, row + size_t(x) * channels + c, n);
      });
    }
  });
}

template <class T>
void GiveToLargest(const Call& call, const Shard& shard) {
  const uint8_t* places = call.inputs[0].bytes();
  const T* dy = call.inputs[1].as<T>();
  GatherWindows<T>(
      call, shard, call.inputs[1].shape, [&](size_t at, ptrdiff_t place, size_t n) TRIREME_INLINED {
        const auto won =
            hn::Eq(LoadPlaces(places + at, n), hn::Set(Floats(), static_cast<float>(place)));
        return hn::IfThenElseZero(won, LoadN(dy + at, n));
      });
}

// Pixels of the padding count as zeros.
template <class T>
void Average(const Call& call, const Shard& shard) {
  const Shape &in = call.inputs[0].shape, &out = call.outputs[0].shape;
  const Windows w(call.attributes);
  const size_t channels = size_t(in.channels);
  const V share = hn::Set(Floats(), 1.0f / static_cast<float>(w.kernel * w.kernel));
  ForPixelRows(shard, out, 8, [&](size_t sample, ptrdiff_t y) HWY_ATTR {
    const T* x_sample = call.inputs[0].as<T>() + sample * call.inputs[0].size();
    T* row = call.outputs[0].as<T>() +
             (sample * size_t(out.height) + size_t(y)) * size_t(out.width) * channels;
    const Span ys = w.pixels(y, in.height);
    for (ptrdiff_t x = 0; x < out.width; ++x) {
      const Span xs = w.pixels(x, in.width);
      ForLanes(0, channels, [&](size_t c, size_t n) TRIREME_INLINED {
        V sum = hn::Zero(Floats());
        for (ptrdiff_t py = ys.begin; py < ys.end; ++py) {
          for (ptrdiff_t px = xs.begin; px < xs.end; ++px) {
            const T* from = x_sample + size_t(py * in.width + px) * channels + c;
            sum = hn::Add(sum, LoadN(from, n));
          }
        }
        StoreN(hn::Mul(sum, share), row + size_t(x) * channels + c, n);
      });
    }
  });
}

template <class T>
void SpreadAverage(const Call& call, const Shard& shard) {
  const T* dy = call.inputs[0].as<T>();
  const int kernel = call.attributes.kernel;
  const V share = hn::Set(Floats(), 1.0f / static_cast<float>(kernel * kernel));
  GatherWindows<T>(call, shard, call.inputs[0].shape,
                   [&](size_t at, ptrdiff_t, size_t n)
                       TRIREME_INLINED { return hn::Mul(LoadN(dy + at, n), share); });
}

// Of whole images the results are few, so they are float32 in any case.
template <class T>
void AverageAll(const Call& call, const Shard& shard) {
  const Shape& in = call.inputs[0].shape;
  const size_t channels = size_t(in.channels), pixels = size_t(in.height) * size_t(in.width);
  const V share = hn::Set(Floats(), 1.0f / static_cast<float>(pixels));
  const size_t grain = 1 + GrainFor(1) / call.inputs[0].size();
  ParallelFor(*shard.team, shard.count, grain, [&](size_t begin, size_t end) HWY_ATTR {
    for (size_t s = begin; s < end; ++s) {
      const T* x = call.inputs[0].as<T>() + s * call.inputs[0].size();
      float* y = call.outputs[0].floats() + s * channels;
      ForLanes(0, channels, [&](size_t c, size_t n) TRIREME_INLINED {
        V sum = hn::Zero(Floats());
        for (size_t p = 0; p < pixels; ++p) sum = hn::Add(sum, LoadN(x + p * channels + c, n));
        StoreN(hn::Mul(sum, share), y + c, n);
      });
    }
  });
}

template <class T>
void SpreadAverageOfAll(const Call& call, const Shard& shard) {
  const Shape& in = call.outputs[0].shape;
  const size_t channels = size_t(in.channels), pixels = size_t(in.height) * size_t(in.width);
  const V share = hn::Set(Floats(), 1.0f / static_cast<float>(pixels));
  const size_t grain = 1 + GrainFor(1) / call.outputs[0].size();
  ParallelFor(*shard.team, shard.count, grain, [&](size_t begin, size_t end) HWY_ATTR {
    for (size_t s = begin; s < end; ++s) {
      const float* dy = call.inputs[0].floats() + s * channels;
      T* dx = call.outputs[0].as<T>() + s * call.outputs[0].size();
      ForLanes(0, channels, [&](size_t c, size_t n) TRIREME_INLINED {
        const V value = hn::Mul(LoadN(dy + c, n), share);
        for (size_t p = 0; p < pixels; ++p) StoreN(value, dx + p * channels + c, n);
      });
    }
  });
}

}  // namespace

void MaxPool(const Call& call, const Shard& shard) {
  WithElement(call.inputs[0], [&](auto t) { TakeLargest<decltype(t)>(call, shard); });
}
void MaxPoolGrad(const Call& call, const Shard& shard) {
  WithElement(call.outputs[0], [&](auto t) { GiveToLargest<decltype(t)>(call, shard); });
}
void AveragePool(const Call& call, const Shard& shard) {
  WithElement(call.inputs[0], [&](auto t) { Average<decltype(t)>(call, shard); });
}
void AveragePoolGrad(const Call& call, const Shard& shard) {
  WithElement(call.outputs[0], [&](auto t) { SpreadAverage<decltype(t)>(call, shard); });
}
void GlobalAveragePool(const Call& call, const Shard& shard) {
  WithElement(call.inputs[0], [&](auto t) { AverageAll<decltype(t)>(call, shard); });
}
void GlobalAveragePoolGrad(const Call& call, const Shard& shard) {
  WithElement(call.outputs[0], [&](auto t) { SpreadAverageOfAll<decltype(t)>(call, shard); });
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
