#include "flat/arithmetic.h"

#include <algorithm>

namespace trireme::flat {
namespace {

// The table of the queue's device, once every slice is known to live there.
template <class... Slices>
const FlatTable& TableOf(const Queue& q, const Slices&... slices) {
  Device& device = q.device();
  TRIREME_ASSERT(((slices.device == &device) && ...));
  return device.table();
}

template <class... Slices>
void CheckSizes(const Slice& first, const Slices&... others) {
  TRIREME_ASSERT(((first.size == others.size) && ...));
}

// `out` takes values of 8 bytes.
void CheckWords(const Slice& out, size_t words) {
  TRIREME_ASSERT(out.size == words * (sizeof(uint64_t) / sizeof(float)));
  TRIREME_ASSERT(reinterpret_cast<uintptr_t>(out.data) % sizeof(uint64_t) == 0);
}

}  // namespace

void Put(Queue& q, const float* host, Slice to) { TableOf(q, to).put(q, host, to); }

void Get(Queue& q, Slice from, float* host) { TableOf(q, from).get(q, from, host); }

void Put(Queue& q, std::span<const float> host, Slice to) {
  TRIREME_ASSERT(host.size() == to.size);
  Put(q, host.data(), to);
}

void Get(Queue& q, Slice from, std::span<float> host) {
  TRIREME_ASSERT(host.size() == from.size);
  Get(q, from, host.data());
}

void Fill(Queue& q, float value, Slice to) { TableOf(q, to).fill(q, value, to); }

void Copy(Queue& q, Slice from, Slice to) {
  CheckSizes(from, to);
  TableOf(q, from, to).copy(q, from, to);
}

void Add(Queue& q, Slice from, Slice to) {
  CheckSizes(from, to);
  TableOf(q, from, to).add(q, from, to);
}

void Blend(Queue& q, float a, Slice x, float b, Slice y) {
  CheckSizes(x, y);
  TableOf(q, x, y).blend(q, a, x, b, y);
}

// One row fewer: 1 y is y, and the product and the sum round once.
void Axpy(Queue& q, float a, Slice x, Slice y) { Blend(q, a, x, 1, y); }

void Scale(Queue& q, float a, Slice x) { TableOf(q, x).scale(q, a, x); }

void Dot(Queue& q, Slice x, Slice y, Slice out) {
  CheckSizes(x, y);
  CheckWords(out, 1);
  TableOf(q, x, y, out).dot(q, x, y, out);
}

void SumInOrder(Queue& q, Slice start, std::span<const Slice> parts, Slice out) {
  CheckSizes(start, out);
  const FlatTable& table = TableOf(q, start, out);
  size_t done = 0;
  do {  // at least once: without parts the sum is a copy
    SliceList list;
    list.size = std::min(SliceList::kMost, parts.size() - done);
    for (size_t i = 0; i < list.size; ++i) {
      list.items[i] = parts[done + i];
      CheckSizes(list.items[i], out);
      TRIREME_ASSERT(list.items[i].device == out.device);
    }
    table.sum_in_order(q, done == 0 ? start : out, list, out);
    done += list.size;
  } while (done < parts.size());
}

void ElasticPull(Queue& q, float alpha, Slice centre, Slice weights, Slice pull) {
  CheckSizes(weights, centre, pull);
  TableOf(q, centre, weights, pull).elastic_pull(q, alpha, centre, weights, pull);
}

void CheckAndClip(Queue& q, Gradient gradients, Slice statistics, float clip,
                  const LossScaling& loss, Slice scale) {
  TRIREME_ASSERT(scale.size == UpdateScale::kSize);
  TRIREME_ASSERT(clip <= 0 || gradients.unwritten.empty());
  TableOf(q, gradients.values, statistics, scale)
      .check_and_clip(q, gradients, statistics, clip, loss, scale);
}

void CheckUpdate(const Queue& q, Slice scale, Slice decays, const Gradient& gradient,
                 std::span<const Slice> kept, Slice weight) {
  TableOf(q, scale, gradient.values, weight);
  CheckSizes(weight, gradient.values);
  TRIREME_ASSERT(scale.size == UpdateScale::kSize);
  for (const Slice& slice : kept) {
    TableOf(q, slice);
    CheckSizes(weight, slice);
  }
  if (decays.size == 0) return;
  TRIREME_ASSERT(decays.size == (weight.size + Layout::kAlignment - 1) / Layout::kAlignment);
  TableOf(q, decays);
}

void Track(Queue& q, float momentum, Slice scale, Slice seen, Slice running) {
  CheckSizes(seen, running);
  TRIREME_ASSERT(scale.size == UpdateScale::kSize);
  TableOf(q, scale, seen, running).track(q, momentum, scale, seen, running);
}

void Digest(Queue& q, Slice from, std::span<const Range> ranges, Slice out) {
  const FlatTable& table = TableOf(q, from, out);
  CheckWords(out, ranges.size());
  for (size_t done = 0; done < ranges.size();) {
    RangeList list;
    list.size = std::min(RangeList::kMost, ranges.size() - done);
    for (size_t i = 0; i < list.size; ++i) {
      list.items[i] = ranges[done + i];
      TRIREME_ASSERT(list.items[i].end() <= from.size);
    }
    table.digest(q, from, list, out.Sub(done * kDigestFloats, list.size * kDigestFloats));
    done += list.size;
  }
}

}  // namespace trireme::flat
