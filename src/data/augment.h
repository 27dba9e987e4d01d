#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/normalizer.h"
#include "data/sample.h"

namespace trireme {

// Random changes to a training picture: functions of (seed, epoch, sample) alone, so every rank and
// loader thread makes the same ones. A value; every thread may call everything.
class Augment {
 public:
  Augment() = default;  // changes nothing

  // `kind` is "none", "flip" or "crop-flip": the picture is surrounded by 4 black pixels and cut
  // again at a random place. `normalizer` says what black has become.
  Augment(std::string_view kind, uint64_t seed, const SampleShape& shape,
          const Normalizer& normalizer);

  bool active() const { return flip_ || margin_ > 0; }

  // Changes the normalised picture in place.
  void Apply(int64_t epoch, int64_t sample, std::span<float> picture) const;

 private:
  void Flip(std::span<float> picture) const;
  void Shift(int down, int right, std::span<float> picture) const;

  bool flip_ = false;
  int margin_ = 0;
  uint64_t seed_ = 0;
  SampleShape shape_;
  std::vector<float> black_;  // one row
};

}  // namespace trireme
