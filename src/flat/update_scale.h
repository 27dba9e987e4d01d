#pragma once
#include <cstddef>

namespace trireme {

// How a loss is scaled whose gradients would vanish in float16 (Micikevicius et al. 2018): as much
// as they bear. The scale falls after an overflow, and grows after `interval` updates without one.
struct LossScaling {
  // An overflow of so small a scale is not its fault; a larger one would have no inverse.
  static constexpr float kLeast = 0x1p-14f, kMost = 0x1p126f;

  float growth = 2, backoff = 0.5f;  // factors
  int interval = 0;                  // 0: the loss is not scaled
  bool unscales = true;              // false: what is looked at has been unscaled already

  constexpr bool on() const { return interval > 0; }
};

// What CheckAndClip leaves on the device for an update.
struct UpdateScale {
  static constexpr size_t kFactor = 0;   // of the gradients; 0 skips the update
  static constexpr size_t kSkipped = 1;  // updates skipped since the slice was filled with 0
  static constexpr size_t kLoss = 2;     // scale of the loss for the gradients that come next
  static constexpr size_t kInverse = 3;  // of the scale of those looked at; 0: they are not finite
  static constexpr size_t kFinite = 4;   // updates without an overflow since the scale changed
  static constexpr size_t kSize = 5;
};

// The end of CheckAndClip, the same on every device: all that it looked at is finite or not, and,
// to clip, the gradients have this norm.
constexpr void Judge(const LossScaling& loss, bool finite, float clip, double norm, float* scale) {
  using S = UpdateScale;
  const float inverse = loss.on() && loss.unscales ? 1 / scale[S::kLoss] : 1;
  const bool clips = clip > 0 && norm * double(inverse) > double(clip);
  scale[S::kFactor] = !finite ? 0 : clips ? float(double(clip) / norm) : inverse;
  scale[S::kInverse] = finite ? inverse : 0;
  if (!finite) scale[S::kSkipped] += 1;
  if (!loss.on()) return;
  scale[S::kFinite] = finite ? scale[S::kFinite] + 1 : 0;
  const bool grows = scale[S::kFinite] >= float(loss.interval);
  if (finite && !grows) return;
  scale[S::kFinite] = 0;
  const float next = scale[S::kLoss] * (finite ? loss.growth : loss.backoff);
  if (next > LossScaling::kMost) return;
  scale[S::kLoss] = next < LossScaling::kLeast ? LossScaling::kLeast : next;
}

}  // namespace trireme
