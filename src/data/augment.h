#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/sample_change.h"
#include "data/framing.h"
#include "data/normalizer.h"
#include "data/sample.h"

namespace trireme {

// What an augmentation may need to know of the samples.
struct AugmentContext {
  SampleShape shape;
  double least_area = 0.08;  // data.least_area
};

// A row of the list of augmentations: pure functions of `draw`, 64 random bits of (seed, epoch,
// sample). Either may be null; where the picture is cut when it is read, `frame` goes before.
struct AugmentKind {
  const char* name;
  const char* help;
  void (*frame)(const AugmentContext& context, uint64_t draw, Framing& framing);
  // Goes on with a change that others have begun.
  void (*change)(const AugmentContext& context, uint64_t draw, SampleChange& change);
};

std::span<const AugmentKind> AugmentKinds();

// Random changes to a training picture: functions of (seed, epoch, sample) alone, so every rank and
// loader thread makes the same ones. A value; every thread may call everything.
class Augment {
 public:
  Augment() = default;  // changes nothing

  // `kinds` is "none" or names of AugmentKinds() with commas between, in their order, none of them
  // twice; "crop-flip" stands for "flip,pad-crop". `normalizer` says what black has become; `cut`
  // whether pictures are cut when they are read.
  Augment(std::string_view kinds, uint64_t seed, const SampleShape& shape,
          const Normalizer& normalizer, bool cut = false, double least_area = 0.08);

  // How to cut the picture, if it is.
  Framing Frame(int64_t epoch, int64_t sample) const;

  bool active() const { return !changes_.empty(); }

  // What becomes of the picture.
  SampleChange Change(int64_t epoch, int64_t sample) const;

  // Changes the normalised picture in place.
  void Apply(const SampleChange& change, std::span<float> picture) const;
  void Apply(int64_t epoch, int64_t sample, std::span<float> picture) const {
    Apply(Change(epoch, sample), picture);
  }

 private:
  uint64_t Draw(int64_t epoch, int64_t sample) const;

  uint64_t seed_ = 0;
  AugmentContext context_;
  std::vector<float> black_;  // one row, normalised
  std::vector<const AugmentKind*> frames_, changes_;
};

}  // namespace trireme
