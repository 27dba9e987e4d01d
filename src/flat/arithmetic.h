#pragma once
#include <array>
#include <span>

#include "flat/device.h"

namespace trireme {

// Summands of one rank's shards, by value: the work may run after the caller has returned.
struct SliceList {
  static constexpr size_t kMost = 16;
  std::array<Slice, kMost> items;
  size_t size = 0;
};

struct SgdRates {
  float rate, momentum, decay;
  bool nesterov;
};
struct AdamRates {
  float rate, beta1, beta2, epsilon;
  float decay;               // added to the gradient (Adam) ...
  bool decoupled;            // ... or taken off the weight directly (AdamW)
  float correct1, correct2;  // 1 / (1 - beta^t)
};
struct AdagradRates {
  float rate, epsilon, decay;
};

// One table per device; every entry enqueues on the given queue and returns.
// Lengths of all slices of a call are equal unless said otherwise. Host memory handed to put and
// get stays alive and untouched until the queue has passed.
struct FlatTable {
  void (*put)(Queue&, const float* host, Slice to);
  void (*get)(Queue&, Slice from, float* host);
  void (*fill)(Queue&, float value, Slice to);
  void (*copy)(Queue&, Slice from, Slice to);
  void (*add)(Queue&, Slice from, Slice to);                             // to += from
  void (*blend)(Queue&, float a, Slice x, float b, Slice y);             // y = a x + b y
  void (*fold)(Queue&, Slice start, const SliceList& parts, Slice out);  // ((start + p0) + p1) ...
  // pull = alpha (weights - centre);  weights -= pull
  void (*elastic_pull)(Queue&, float alpha, Slice centre, Slice weights, Slice pull);

  // The guard of an update: factor[0] = 0 if any gradient is not finite, else clip / norm where the
  // norm exceeds clip (clip > 0), else 1. The factor stays on the device: nobody asks the host.
  void (*guard)(Queue&, Slice gradients, float clip, Slice factor);
  // Update rules: g = factor[0] * gradient; nothing moves when the factor is 0.
  void (*sgd)(Queue&, const SgdRates&, Slice factor, Slice gradient, Slice velocity, Slice weight);
  void (*adam)(Queue&, const AdamRates&, Slice factor, Slice gradient, Slice mean, Slice square,
               Slice weight);
  void (*adagrad)(Queue&, const AdagradRates&, Slice factor, Slice gradient, Slice sum,
                  Slice weight);
  // Running statistics: running += momentum (seen - running); nothing moves when the factor is 0.
  void (*track)(Queue&, float momentum, Slice factor, Slice seen, Slice running);
};

namespace flat {
inline void Put(Queue& q, const float* host, Slice to) { to.device->table().put(q, host, to); }
inline void Get(Queue& q, Slice from, float* host) { from.device->table().get(q, from, host); }
inline void Fill(Queue& q, float value, Slice to) { to.device->table().fill(q, value, to); }
void Copy(Queue& q, Slice from, Slice to);
void Add(Queue& q, Slice from, Slice to);
void Blend(Queue& q, float a, Slice x, float b, Slice y);
// out = ((start + parts[0]) + parts[1]) + ...; any number of parts.
void Fold(Queue& q, Slice start, std::span<const Slice> parts, Slice out);
}  // namespace flat

}  // namespace trireme
