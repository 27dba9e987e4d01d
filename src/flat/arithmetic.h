#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <tuple>

#include "flat/device.h"
#include "flat/gradient.h"
#include "flat/layout.h"
#include "flat/update_scale.h"

namespace trireme {

// Summands of one rank's shards, by value: the work may run after the caller has returned.
struct SliceList {
  static constexpr size_t kMost = 16;
  std::array<Slice, kMost> items;
  size_t size = 0;
};

// Ranges of a slice, likewise.
struct RangeList {
  static constexpr size_t kMost = 16;
  std::array<Range, kMost> items;
  size_t size = 0;
};

// Update rules, PyTorch's formulas, one pass over all weights whatever their decay. A rule is a
// struct of what it multiplies with, which says how many slices, as long as the weights, it keeps;
// the list below names it. g is the gradient that it sees (see Update), d the decay.

// velocity = momentum velocity + g + d weight;  weight -= rate velocity. Without momentum the
// velocity is not touched and may be empty. With skip_zeros, and without momentum and decay, a
// device may leave alone the weights of a run of Layout::kAlignment (64 bytes) whose gradients are
// all zero: others who share the weights keep their cache lines.
struct SgdRates {
  static constexpr size_t kKeeps = 1;
  float rate, momentum;
  bool nesterov;
  bool skip_zeros = false;
  bool keeps() const { return momentum != 0; }
};
// mean = beta1 mean + (1 - beta1) g;  square = beta2 square + (1 - beta2) g^2
// weight = (1 - shrink d) weight - rate mean / (root sqrt(square) + epsilon)
struct AdamRates {
  static constexpr size_t kKeeps = 2;
  float rate;          // lr / (1 - beta1^t)
  float beta1, rest1;  // rest = 1 - beta, rounded once
  float beta2, rest2;
  float root;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
  bool decoupled;  // AdamW: shrink * decay of the weight is taken off it directly ...
  float shrink;    // ... where shrink is lr; else decay * weight is added to the gradient
  bool keeps() const { return true; }
};
// sum += g^2;  weight -= rate g / (sqrt(sum) + epsilon)
struct AdagradRates {
  static constexpr size_t kKeeps = 1;
  float rate, epsilon;
  bool keeps() const { return true; }
};

// What a rule keeps, in its order.
template <class Rates>
using Kept = std::array<Slice, Rates::kKeeps>;

template <class Rates>
using UpdateEntry = void (*)(Queue&, const Rates&, Slice scale, Slice decays, Gradient gradient,
                             const Kept<Rates>&, Slice weight);
template <class... Rates>
struct UpdateList {
  using Entries = std::tuple<UpdateEntry<Rates>...>;
};
using UpdateRules = UpdateList<SgdRates, AdamRates, AdagradRates>;

// One table per device; every entry enqueues on the given queue (one of the same device) and
// returns. Call through the functions below, which check lengths and devices.
struct FlatTable {
  void (*put)(Queue&, const float* host, Slice to);
  void (*get)(Queue&, Slice from, float* host);
  void (*fill)(Queue&, float value, Slice to);
  void (*copy)(Queue&, Slice from, Slice to);
  void (*add)(Queue&, Slice from, Slice to);
  void (*blend)(Queue&, float a, Slice x, float b, Slice y);
  void (*scale)(Queue&, float a, Slice x);
  void (*dot)(Queue&, Slice x, Slice y, Slice out);
  void (*sum_in_order)(Queue&, Slice start, const SliceList& parts, Slice out);
  void (*elastic_pull)(Queue&, float alpha, Slice centre, Slice weights, Slice pull);
  void (*check_and_clip)(Queue&, Gradient gradients, Slice statistics, float clip,
                         const LossScaling& loss, Slice scale);
  UpdateRules::Entries updates;
  void (*track)(Queue&, float momentum, Slice scale, Slice seen, Slice running);
  void (*digest)(Queue&, Slice from, const RangeList& ranges, Slice out);
};

// Arithmetic on slices. All slices of a call have the same length and device, and do not overlap
// (the same slice twice is fine where said).
namespace flat {

// To and from host memory that the device reaches by itself (flat/host_memory.h), alive and
// untouched until the queue has passed; for other memory flat/staging.h has PutNow and GetNow.
void Put(Queue& q, const float* host, Slice to);
void Get(Queue& q, Slice from, float* host);
void Put(Queue& q, std::span<const float> host, Slice to);
void Get(Queue& q, Slice from, std::span<float> host);

void Fill(Queue& q, float value, Slice to);
void Copy(Queue& q, Slice from, Slice to);                 // from may be to
void Add(Queue& q, Slice from, Slice to);                  // to += from
void Blend(Queue& q, float a, Slice x, float b, Slice y);  // y = a x + b y
void Axpy(Queue& q, float a, Slice x, Slice y);            // y += a x
void Scale(Queue& q, float a, Slice x);                    // x *= a
// The sum of x[i] y[i] in double, where no finite floats overflow; x may be y. The double takes the
// place of kDoubleFloats floats of `out`, which is aligned to 8 bytes. Its bits depend on the
// slices and the device alone, not on who else computes there.
constexpr size_t kDoubleFloats = sizeof(double) / sizeof(float);
void Dot(Queue& q, Slice x, Slice y, Slice out);
// out = ((start + parts[0]) + parts[1]) + ...: any number of parts; out may be start.
void SumInOrder(Queue& q, Slice start, std::span<const Slice> parts, Slice out);
// pull = alpha (weights - centre);  weights -= pull
void ElasticPull(Queue& q, float alpha, Slice centre, Slice weights, Slice pull);

// Before an update: scale[kFactor] = 0 if any gradient or statistic is not finite, else
// clip / norm where the gradients' norm exceeds clip (clip > 0), else 1. A 0 also adds one to
// scale[kSkipped]. Where the loss is scaled, the factor unscales, too, and scale[kLoss] is the next
// step's. The scale stays on the device: nobody asks the host. To clip, all gradients must be
// written. Gradients that are known to be finite are read only to clip.
void CheckAndClip(Queue& q, Gradient gradients, Slice statistics, float clip,
                  const LossScaling& loss, Slice scale);

// The lengths and devices of an update.
void CheckUpdate(const Queue& q, Slice scale, Slice decays, const Gradient& gradient,
                 std::span<const Slice> kept, Slice weight);
// Applies a rule. decays[b] is the weight decay d of the b-th block of Layout::kAlignment weights;
// an empty slice: none decays. g = scale[kFactor] * gradient; nothing moves when the factor is 0.
template <class Rates>
void Update(Queue& q, const Rates& r, Slice scale, Slice decays, Gradient gradient,
            const Kept<Rates>& kept, Slice weight) {
  CheckUpdate(q, scale, decays, gradient, r.keeps() ? std::span(kept) : std::span<const Slice>(),
              weight);
  std::get<UpdateEntry<Rates>>(q.device().table().updates)(q, r, scale, decays, gradient, kept,
                                                           weight);
}
// Running statistics: running += momentum (seen - running); nothing moves when the factor is 0.
void Track(Queue& q, float momentum, Slice scale, Slice seen, Slice running);

// The digest of each range of `from` (flat/digest.h), whatever its device: 64 bits, which take the
// place of kDigestFloats floats of `out`. Any number of ranges; `out` is aligned to 8 bytes.
constexpr size_t kDigestFloats = sizeof(uint64_t) / sizeof(float);
void Digest(Queue& q, Slice from, std::span<const Range> ranges, Slice out);

}  // namespace flat
}  // namespace trireme
