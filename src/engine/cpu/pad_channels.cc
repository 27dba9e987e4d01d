// pad_channels: pixels are copied as bytes, whatever their type; zeros are zeros in all of them.
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/pad_channels.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/cpu/elementwise-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {
namespace {

// Calls row(sample, y) for all rows of pixels of a value.
template <class F>
void ForRowsOf(const Shard& shard, const Shape& shape, const F& row) {
  const size_t height = size_t(shape.height);
  const size_t grain = 1 + GrainFor(1) / (size_t(shape.width) * size_t(shape.channels));
  ParallelFor(*shard.team, shard.count * height, grain, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) row(i / height, i % height);
  });
}

template <class T>
void Pad(const Call& call, const Shard& shard) {
  const Shape &in = call.inputs[0].shape, &out = call.outputs[0].shape;
  const size_t stride = size_t(call.attributes.stride);
  const size_t own = size_t(in.channels), all = size_t(out.channels);
  ForRowsOf(shard, out, [&](size_t sample, size_t y) {
    const T* from = call.inputs[0].as<T>() + sample * call.inputs[0].size() +
                    y * stride * size_t(in.width) * own;
    T* to = call.outputs[0].as<T>() + sample * call.outputs[0].size() + y * size_t(out.width) * all;
    for (size_t x = 0; x < size_t(out.width); ++x) {
      std::memcpy(to + x * all, from + x * stride * own, own * sizeof(T));
      std::memset(static_cast<void*>(to + x * all + own), 0, (all - own) * sizeof(T));
    }
  });
}

template <class T>
void Unpad(const Call& call, const Shard& shard) {
  const Shape &in = call.outputs[0].shape, &out = call.inputs[0].shape;
  const size_t stride = size_t(call.attributes.stride);
  const size_t own = size_t(in.channels), all = size_t(out.channels);
  ForRowsOf(shard, in, [&](size_t sample, size_t y) {
    T* to = call.outputs[0].as<T>() + sample * call.outputs[0].size() + y * size_t(in.width) * own;
    if (stride > 1) std::memset(static_cast<void*>(to), 0, size_t(in.width) * own * sizeof(T));
    if (y % stride != 0) return;
    const T* from = call.inputs[0].as<T>() + sample * call.inputs[0].size() +
                    y / stride * size_t(out.width) * all;
    for (size_t x = 0; x < size_t(out.width); ++x) {
      std::memcpy(to + x * stride * own, from + x * all, own * sizeof(T));
    }
  });
}

}  // namespace

void PadChannels(const Call& call, const Shard& shard) {
  WithElement(call.inputs[0], [&](auto t) { Pad<decltype(t)>(call, shard); });
}
void PadChannelsGrad(const Call& call, const Shard& shard) {
  WithElement(call.outputs[0], [&](auto t) { Unpad<decltype(t)>(call, shard); });
}

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
