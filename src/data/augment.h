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

// What an augmentation may need to know of the samples and of the recipe's section [data].
struct AugmentContext {
  SampleShape shape;
  bool cut = false;   // whether pictures are cut when they are read
  bool bytes = true;  // whether values stand for bytes: what is black and what is white is known
  double least_area = 0.08;
  double jitter = 0.4;
  int operations = 2;
  double magnitude = 9;
  double mixup_alpha = 0.2, cutmix_alpha = 1;
};

constexpr double kMostMagnitude = 30;  // RandAugment's

// What a picture is mixed with: another one of the set, changed as where it stands itself in the
// epoch.
struct SampleMix {
  int64_t other = 0;
  float share = 0;  // of the other; 0: it is not mixed
  // cutmix: where the other is shown instead; empty: everywhere, by its share.
  int top = 0, left = 0, bottom = 0, end = 0;
};

// The order in which changes are made; a list with another one is refused. Only places may be
// changed after erasing, too, which moves what is erased.
enum class AugmentPart { kPlaces, kMapped, kColours, kErased, kMixed };

// A row of the list of augmentations: pure functions of `draw`, 64 random bits of (seed, epoch,
// sample). Functions may be null; where the picture is cut when it is read, `frame` goes before.
struct AugmentKind {
  const char* name;
  const char* help;
  AugmentPart part;
  void (*frame)(const AugmentContext& context, uint64_t draw, Framing& framing);
  // Goes on with a change that others have begun.
  void (*change)(const AugmentContext& context, uint64_t draw, SampleChange& change);
  bool of_bytes = false;  // only where values stand for bytes
  // Sets the share of the other picture, and where it is shown.
  void (*mix)(const AugmentContext& context, uint64_t draw, SampleMix& mix) = nullptr;
};

std::span<const AugmentKind> AugmentKinds();

// Random changes to a training picture: functions of (seed, epoch, sample) alone, so every rank and
// loader thread makes the same ones. A value; every thread may call everything.
class Augment {
 public:
  Augment() = default;  // changes nothing

  // `kinds` is "none" or names of AugmentKinds() with commas between, in their order, none of them
  // twice; "crop-flip" stands for "flip,pad-crop". `normalizer` says what black has become.
  Augment(std::string_view kinds, uint64_t seed, const AugmentContext& context,
          const Normalizer& normalizer);

  // How to cut the picture, if it is.
  Framing Frame(int64_t epoch, int64_t sample) const;

  bool active() const { return !changes_.empty(); }

  // What becomes of the picture.
  SampleChange Change(int64_t epoch, int64_t sample) const;

  // Whether pictures are mixed with others, and what with; `size`: of the set. Of several kinds
  // each picture has one.
  bool mixes() const { return !mixes_.empty(); }
  SampleMix Mix(int64_t epoch, int64_t sample, int64_t size) const;
  // Mixes the other picture into one; both are changed.
  void Apply(const SampleMix& mix, std::span<const float> other, std::span<float> picture) const;

  // Changes the normalised picture in place. `scratch` becomes as large as a picture where a change
  // needs that.
  void Apply(const SampleChange& change, std::span<float> picture,
             std::vector<float>& scratch) const;

 private:
  uint64_t Draw(int64_t epoch, int64_t sample) const;
  void Add(const AugmentKind& kind, std::string_view kinds);
  ByteLook look() const;
  void MapPicture(const PlaceMap& map, std::span<float> picture, std::vector<float>& scratch) const;

  uint64_t seed_ = 0;
  AugmentContext context_;
  std::vector<float> scale_, shift_;  // of each channel
  std::vector<float> black_;          // one row, normalised
  std::vector<const AugmentKind*> frames_, changes_, mixes_;
};

}  // namespace trireme
