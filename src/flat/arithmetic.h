#pragma once
#include <array>
#include <span>

#include "flat/device.h"
#include "flat/gradient.h"
#include "flat/layout.h"

namespace trireme {

// Summands of one rank's shards, by value: the work may run after the caller has returned.
struct SliceList {
  static constexpr size_t kMost = 16;
  std::array<Slice, kMost> items;
  size_t size = 0;
};

struct SgdRates {
  float rate, momentum;
  bool nesterov;
  bool skip_zeros = false;  // see Sgd
};
struct AdamRates {
  float rate;          // lr / (1 - beta1^t)
  float beta1, rest1;  // rest = 1 - beta, rounded once
  float beta2, rest2;
  float root;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
  bool decoupled;  // AdamW: shrink * decay of the weight is taken off it directly ...
  float shrink;    // ... where shrink is lr; else decay * weight is added to the gradient
};
struct AdagradRates {
  float rate, epsilon;
};

// What the guard of an update leaves on the device.
struct Verdict {
  static constexpr size_t kFactor = 0;  // of the gradients; 0 skips the update
  static constexpr size_t kSkipped =
      1;  // updates that were skipped since the slice was filled with 0
  static constexpr size_t kSize = 2;
};

// One table per device; every entry enqueues on the given queue (one of the same device) and
// returns. Call through the functions below, which check lengths and devices.
struct FlatTable {
  void (*put)(Queue&, const float* host, Slice to);
  void (*get)(Queue&, Slice from, float* host);
  void (*fill)(Queue&, float value, Slice to);
  void (*copy)(Queue&, Slice from, Slice to);
  void (*add)(Queue&, Slice from, Slice to);
  void (*blend)(Queue&, float a, Slice x, float b, Slice y);
  void (*fold)(Queue&, Slice start, const SliceList& parts, Slice out);
  void (*elastic_pull)(Queue&, float alpha, Slice centre, Slice weights, Slice pull);
  void (*guard)(Queue&, Gradient gradients, Slice statistics, float clip, Slice verdict);
  void (*sgd)(Queue&, const SgdRates&, Slice verdict, Slice decays, Gradient gradient,
              Slice velocity, Slice weight);
  void (*adam)(Queue&, const AdamRates&, Slice verdict, Slice decays, Gradient gradient, Slice mean,
               Slice square, Slice weight);
  void (*adagrad)(Queue&, const AdagradRates&, Slice verdict, Slice decays, Gradient gradient,
                  Slice sum, Slice weight);
  void (*track)(Queue&, float momentum, Slice verdict, Slice seen, Slice running);
};

// Arithmetic on slices. All slices of a call have the same length and device, and do not overlap
// (the same slice twice is fine where said).
namespace flat {

// Host memory stays alive and untouched until the queue has passed.
void Put(Queue& q, const float* host, Slice to);
void Get(Queue& q, Slice from, float* host);
void Put(Queue& q, std::span<const float> host, Slice to);
void Get(Queue& q, Slice from, std::span<float> host);

void Fill(Queue& q, float value, Slice to);
void Copy(Queue& q, Slice from, Slice to);                 // from may be to
void Add(Queue& q, Slice from, Slice to);                  // to += from
void Blend(Queue& q, float a, Slice x, float b, Slice y);  // y = a x + b y
// out = ((start + parts[0]) + parts[1]) + ...: any number of parts; out may be start.
void Fold(Queue& q, Slice start, std::span<const Slice> parts, Slice out);
// pull = alpha (weights - centre);  weights -= pull
void ElasticPull(Queue& q, float alpha, Slice centre, Slice weights, Slice pull);

// The guard of an update: verdict[kFactor] = 0 if any gradient or statistic is not finite, else
// clip / norm where the gradients' norm exceeds clip (clip > 0), else 1. A 0 also adds one to
// verdict[kSkipped]. The verdict stays on the device: nobody asks the host. To clip, all gradients
// must be written. Gradients that are known to be finite are read only to clip.
void Guard(Queue& q, Gradient gradients, Slice statistics, float clip, Slice verdict);

// Update rules, PyTorch's formulas, one pass over all weights whatever their decay: decays[b] is
// the weight decay d of the b-th block of Layout::kAlignment weights; an empty slice: none decays.
// g = verdict[kFactor] * gradient; nothing moves when the factor is 0.

// velocity = momentum velocity + g + d weight;  weight -= rate velocity. Without momentum the
// velocity is not touched and may be empty. With skip_zeros, and without momentum and decay, a
// device may leave alone the weights of a run of Layout::kAlignment (64 bytes) whose gradients are
// all zero: others who share the weights keep their cache lines.
void Sgd(Queue& q, const SgdRates& r, Slice verdict, Slice decays, Gradient gradient,
         Slice velocity, Slice weight);
void Adam(Queue& q, const AdamRates& r, Slice verdict, Slice decays, Gradient gradient, Slice mean,
          Slice square, Slice weight);
void Adagrad(Queue& q, const AdagradRates& r, Slice verdict, Slice decays, Gradient gradient,
             Slice sum, Slice weight);
// Running statistics: running += momentum (seen - running); nothing moves when the factor is 0.
void Track(Queue& q, float momentum, Slice verdict, Slice seen, Slice running);

}  // namespace flat
}  // namespace trireme
