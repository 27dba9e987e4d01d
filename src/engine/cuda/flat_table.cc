#include "engine/cuda/flat_table.h"

#include "engine/cuda/check.h"
#include "engine/cuda/device.h"
#include "engine/cuda/flat.h"

namespace trireme::cuda {
namespace {

// The stream of a queue, on a thread whose calls go to its card.
cudaStream_t StreamOf(Queue& queue) {
  const auto& own = static_cast<CudaQueue&>(queue);
  own.card().Select();
  return own.stream();
}

// Host memory of the device (Device::AllocateHost, Register) is copied when the stream comes to it;
// other memory is copied correctly, too, but the caller waits.
void Move(Queue& q, void* to, const void* from, size_t floats, cudaMemcpyKind kind) {
  if (floats == 0 || to == from) return;
  Check(cudaMemcpyAsync(to, from, floats * sizeof(float), kind, StreamOf(q)), "cudaMemcpyAsync");
}

void Put(Queue& q, const float* host, Slice to) {
  Move(q, to.data, host, to.size, cudaMemcpyHostToDevice);
}
void Get(Queue& q, Slice from, float* host) {
  Move(q, host, from.data, from.size, cudaMemcpyDeviceToHost);
}
void Copy(Queue& q, Slice from, Slice to) {
  Move(q, to.data, from.data, to.size, cudaMemcpyDeviceToDevice);
}

void Fill(Queue& q, float value, Slice to) {
  LaunchFill(StreamOf(q), value, to.data, to.size);
  CheckLaunch("fill");
}

void Add(Queue& q, Slice from, Slice to) {
  LaunchAdd(StreamOf(q), from.data, to.data, to.size);
  CheckLaunch("add");
}

void Blend(Queue& q, float a, Slice x, float b, Slice y) {
  LaunchBlend(StreamOf(q), a, x.data, b, y.data, y.size);
  CheckLaunch("blend");
}

void Scale(Queue& q, float a, Slice x) {
  LaunchScale(StreamOf(q), a, x.data, x.size);
  CheckLaunch("scale");
}

void Dot(Queue& q, Slice x, Slice y, Slice out) {
  LaunchDot(StreamOf(q), x.data, y.data, x.size, static_cast<CudaQueue&>(q).sums(),
            reinterpret_cast<double*>(out.data));
  CheckLaunch("dot");
}

void SumInOrder(Queue& q, Slice start, const SliceList& parts, Slice out) {
  Summands summands = {};
  summands.count = parts.size;
  for (size_t i = 0; i < parts.size; ++i) summands.parts[i] = parts.items[i].data;
  LaunchSumInOrder(StreamOf(q), start.data, summands, out.data, out.size);
  CheckLaunch("sum in order");
}

void ElasticPull(Queue& q, float alpha, Slice centre, Slice weights, Slice pull) {
  LaunchElasticPull(StreamOf(q), alpha, centre.data, weights.data, pull.data, weights.size);
  CheckLaunch("elastic pull");
}

void CheckAndClip(Queue& q, Gradient gradients, Slice statistics, float clip,
                  const LossScaling& loss, Slice scale) {
  TRIREME_ASSERT(gradients.unwritten.empty());  // this engine writes them all
  LaunchCheckAndClip(StreamOf(q),
                     {gradients.values.data, gradients.values.size, gradients.known_finite,
                      statistics.data, statistics.size},
                     clip, loss, static_cast<CudaQueue&>(q).sums(), scale.data);
  CheckLaunch("check and clip");
}

template <class Rates>
void Update(Queue& q, const Rates& r, Slice scale, Slice decays, Gradient gradient,
            const Kept<Rates>& kept, Slice weight) {
  TRIREME_ASSERT(gradient.unwritten.empty());
  const Updated on = {scale.data, decays.size > 0 ? decays.data : nullptr, gradient.values.data,
                      weight.data, weight.size};
  std::apply([&](const auto&... each) { LaunchUpdate(StreamOf(q), r, on, each.data...); }, kept);
  CheckLaunch("update");
}

template <class... Rates>
constexpr UpdateRules::Entries UpdatesOf(UpdateList<Rates...>) {
  return {Update<Rates>...};
}

void Track(Queue& q, float momentum, Slice scale, Slice seen, Slice running) {
  LaunchTrack(StreamOf(q), momentum, scale.data, seen.data, running.data, running.size);
  CheckLaunch("track");
}

void Digest(Queue& q, Slice from, const RangeList& ranges, Slice out) {
  if (ranges.size == 0) return;
  LaunchDigest(StreamOf(q), from.data, ranges, reinterpret_cast<uint64_t*>(out.data));
  CheckLaunch("digest");
}

}  // namespace

const FlatTable kCudaTable = {.put = Put,
                              .get = Get,
                              .fill = Fill,
                              .copy = Copy,
                              .add = Add,
                              .blend = Blend,
                              .scale = Scale,
                              .dot = Dot,
                              .sum_in_order = SumInOrder,
                              .elastic_pull = ElasticPull,
                              .check_and_clip = CheckAndClip,
                              .updates = UpdatesOf(UpdateRules()),
                              .track = Track,
                              .digest = Digest};

}  // namespace trireme::cuda
