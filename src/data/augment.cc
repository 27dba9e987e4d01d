#include "data/augment.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <numbers>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"

namespace trireme {
namespace {

constexpr uint64_t kStream = 0x61756d656e74;  // other random numbers than the order's
constexpr uint64_t kCropStream = 0x63726f70;
constexpr uint64_t kEraseStream = 0x6572617365;
constexpr uint64_t kColourStream = 0x636f6c6f7572;
constexpr uint64_t kMapStream = 0x6d6170;
constexpr uint64_t kMixStream = 0x6d6978;
constexpr int kMargin = 4;

void FrameFlip(const AugmentContext&, uint64_t draw, Framing& framing) {
  framing.mirrored = (draw & 1) != 0;
}

void Flip(const AugmentContext& context, uint64_t draw, SampleChange& change) {
  if ((draw & 1) == 0) return;
  const int width = context.shape.width;
  change.mirrored = !change.mirrored;
  change.right = -change.right;
  change.left = std::exchange(change.end, width - change.left);
  change.left = width - change.left;
}

void PadCrop(const AugmentContext& context, uint64_t draw, SampleChange& change) {
  const auto [height, width, channels] = context.shape;
  const int margin = std::min({kMargin, height, width});
  const auto places = static_cast<uint64_t>(2 * margin + 1);
  change.down = static_cast<int>((draw >> 8 & 0xffffff) * places >> 24) - margin;
  change.right = static_cast<int>((draw >> 32 & 0xffffff) * places >> 24) - margin;
  change.top = std::clamp(change.top + change.down, 0, height);
  change.bottom = std::clamp(change.bottom + change.down, 0, height);
  change.left = std::clamp(change.left + change.right, 0, width);
  change.end = std::clamp(change.end + change.right, 0, width);
}

void FrameCrop(const AugmentContext& context, uint64_t draw, Framing& framing) {
  framing.least_area = context.least_area;
  framing.key = Hash(draw, kCropStream);
}

// Zhong et al. 2017, with the numbers of torchvision.
void Erase(const AugmentContext& context, uint64_t draw, SampleChange& change) {
  const SampleShape& shape = context.shape;
  const Random random(Hash(draw, kEraseStream));
  if (random.Uniform(0) < 0.5) return;
  for (uint64_t i = 1; i < 41; i += 4) {
    const double area = (0.02 + 0.31 * random.Uniform(i)) * shape.height * shape.width;
    const double form = std::exp(std::log(3.3) * (2 * random.Uniform(i + 1) - 1));
    const int height = static_cast<int>(std::lround(std::sqrt(area * form)));
    const int width = static_cast<int>(std::lround(std::sqrt(area / form)));
    if (height < 1 || width < 1 || height >= shape.height || width >= shape.width) continue;
    change.top = static_cast<int>(random.Uniform(i + 2) * double(shape.height - height));
    change.left = static_cast<int>(random.Uniform(i + 3) * double(shape.width - width));
    change.bottom = change.top + height;
    change.end = change.left + width;
    return;
  }
}

// What is seen comes through `after`, then through `map`.
PlaceMap Join(const PlaceMap& map, const PlaceMap& after) {
  return {.x_of_x = map.x_of_x * after.x_of_x + map.x_of_y * after.y_of_x,
          .x_of_y = map.x_of_x * after.x_of_y + map.x_of_y * after.y_of_y,
          .x = map.x_of_x * after.x + map.x_of_y * after.y + map.x,
          .y_of_x = map.y_of_x * after.x_of_x + map.y_of_y * after.y_of_x,
          .y_of_y = map.y_of_x * after.x_of_y + map.y_of_y * after.y_of_y,
          .y = map.y_of_x * after.x + map.y_of_y * after.y + map.y};
}

// What RandAugment chooses from, of a strength from -1 to 1, with the ranges of torchvision.
using MapMaker = PlaceMap (*)(const SampleShape& shape, double strength);
constexpr MapMaker kMaps[] = {
    [](const SampleShape&, double) { return PlaceMap(); },
    [](const SampleShape&, double strength) {
      const double angle = strength * std::numbers::pi / 6;
      const auto cosine = static_cast<float>(std::cos(angle));
      const auto sine = static_cast<float>(std::sin(angle));
      return PlaceMap{.x_of_x = cosine, .x_of_y = sine, .y_of_x = -sine, .y_of_y = cosine};
    },
    [](const SampleShape&, double strength) {
      return PlaceMap{.x_of_y = static_cast<float>(0.3 * strength)};
    },
    [](const SampleShape&, double strength) {
      return PlaceMap{.y_of_x = static_cast<float>(0.3 * strength)};
    },
    [](const SampleShape& shape, double strength) {
      return PlaceMap{.x = static_cast<float>(150.0 / 331 * shape.width * strength)};
    },
    [](const SampleShape& shape, double strength) {
      return PlaceMap{.y = static_cast<float>(150.0 / 331 * shape.height * strength)};
    },
};

// Cubuk et al. 2019. Its operations become one map: what one moves out of the picture the next may
// move in again, and values are read between pixels once.
void MapAtRandom(const AugmentContext& context, uint64_t draw, SampleChange& change) {
  const Random random(Hash(draw, kMapStream));
  for (int i = 0; i < context.operations; ++i) {
    const uint64_t bits = random.Bits(static_cast<uint64_t>(i));
    const double strength = (bits & 1 ? 1 : -1) * context.magnitude / kMostMagnitude;
    const size_t which = (bits >> 8 & 0xffffff) * std::size(kMaps) >> 24;
    change.map = Join(change.map, kMaps[which](context.shape, strength));
  }
}

// Around a grey in the middle: what is farther away needs other samples, or all of this one.
void JitterColours(const AugmentContext& context, uint64_t draw, SampleChange& change) {
  const Random random(Hash(draw, kColourStream));
  const auto factor = [&](uint64_t i) { return 1 + context.jitter * (2 * random.Uniform(i) - 1); };
  const double brightness = factor(0), contrast = factor(1);
  change.colours = {.saturation = static_cast<float>(factor(2)),
                    .gain = static_cast<float>(brightness * contrast),
                    .offset = static_cast<float>(0.5 * (1 - contrast))};
}

// Of the distribution Beta(alpha, alpha), by Joehnk's method (1964); 0 where alpha is.
double DrawBeta(uint64_t draw, double alpha) {
  constexpr uint64_t kTries = 1000;  // at alpha 4 one in 70 succeeds
  const Random random(draw);
  for (uint64_t i = 0; alpha > 0 && i < kTries; ++i) {
    const double x = std::pow(random.Uniform(2 * i), 1 / alpha);
    const double y = std::pow(random.Uniform(2 * i + 1), 1 / alpha);
    if (x + y > 0 && x + y <= 1) return x / (x + y);
  }
  return 0;
}

// Zhang et al. 2018.
void MixUp(const AugmentContext& context, uint64_t draw, SampleMix& mix) {
  mix.share = static_cast<float>(DrawBeta(draw, context.mixup_alpha));
}

// Yun et al. 2019: a rectangle around any place of the picture; what of it lies inside counts.
void CutMix(const AugmentContext& context, uint64_t draw, SampleMix& mix) {
  const auto [height, width, channels] = context.shape;
  const double side = std::sqrt(DrawBeta(Hash(draw), context.cutmix_alpha));
  const Random random(draw);
  const auto cut = [&](uint64_t i, int size, int& begin, int& end) {
    const double middle = random.Uniform(i) * size, half = side * size / 2;
    begin = std::clamp(static_cast<int>(std::lround(middle - half)), 0, size);
    end = std::clamp(static_cast<int>(std::lround(middle + half)), 0, size);
  };
  cut(0, height, mix.top, mix.bottom);
  cut(1, width, mix.left, mix.end);
  mix.share = static_cast<float>(double(mix.bottom - mix.top) * (mix.end - mix.left) /
                                 (double(height) * width));
}

void MirrorPicture(const SampleShape& shape, std::span<float> picture) {
  const int c = shape.channels;
  const ptrdiff_t row = ptrdiff_t{shape.width} * c;
  for (int y = 0; y < shape.height; ++y) {
    float* left = picture.data() + y * row;
    float* right = left + row - c;
    for (; left < right; left += c, right -= c) std::swap_ranges(left, left + c, right);
  }
}

// In place: rows are visited from the side they move to, so none is overwritten before it moved.
void MovePicture(const SampleShape& shape, const std::vector<float>& black, int down, int right,
                 std::span<float> picture) {
  const ptrdiff_t c = shape.channels;
  const ptrdiff_t row = shape.width * c;
  const ptrdiff_t kept = row - std::abs(right) * c;
  for (int i = 0; i < shape.height; ++i) {
    const int y = down > 0 ? shape.height - 1 - i : i;
    float* to = picture.data() + y * row;
    if (y - down < 0 || y - down >= shape.height) {
      std::copy(black.begin(), black.end(), to);
      continue;
    }
    const float* from = to - down * row;
    if (right >= 0) {
      std::copy_backward(from, from + kept, to + row);
      std::copy_n(black.begin(), row - kept, to);
    } else {
      std::copy(from + (row - kept), from + row, to);
      std::copy_n(black.begin(), row - kept, to + kept);
    }
  }
}

void RecolourPicture(const ColourChange& colours, const ByteLook& look, std::span<float> picture) {
  const size_t c = static_cast<size_t>(look.channels);
  for (size_t at = 0; at < picture.size(); at += c) {
    float* const pixel = picture.data() + at;
    const float grey = c == 3 ? GreyOf(look, pixel[0], pixel[1], pixel[2]) : 0;
    for (size_t i = 0; i < c; ++i) {
      pixel[i] = Recoloured(colours, look, static_cast<int>(i), pixel[i], grey);
    }
  }
}

using enum AugmentPart;
constexpr AugmentKind kKinds[] = {
    {"flip", "mirror left to right, half of the time", kPlaces, FrameFlip, Flip},
    {"random-resized-crop",
     "cut out a random part, at least data.least_area of the image, aspect ratio 3:4 to 4:3, and "
     "resize it; only with images:DIR and pack:FILE",
     kPlaces, FrameCrop, nullptr},
    {"pad-crop", "pad with 4 black pixels and crop at a random place", kPlaces, nullptr, PadCrop},
    {"randaugment",
     "rotate, shear or move, data.operations times, each time one of the six (the sixth does "
     "nothing), by data.magnitude",
     kMapped, nullptr, MapAtRandom},
    {"colour-jitter",
     "multiply brightness, contrast (around the middle grey) and, of three channels, saturation by "
     "random factors from 1 - data.jitter to 1 + data.jitter",
     kColours, nullptr, JitterColours, /*of_bytes=*/true},
    {"erase", "set a random rectangle, 2 to 33 % of the image, to 0, half of the time", kErased,
     nullptr, Erase},
    {"mixup",
     "mix with another image: a share of it is added to the rest of this one, and so are the "
     "labels; shares are drawn from Beta(data.mixup_alpha, data.mixup_alpha)",
     kMixed, nullptr, nullptr, /*of_bytes=*/false, MixUp},
    {"cutmix",
     "show a random rectangle of another image; labels are mixed by area, which is drawn from "
     "Beta(data.cutmix_alpha, data.cutmix_alpha)",
     kMixed, nullptr, nullptr, /*of_bytes=*/false, CutMix},
};

const AugmentKind& FindKind(std::string_view name, std::string_view all) {
  std::string known;
  for (const AugmentKind& kind : kKinds) {
    if (name == kind.name) return kind;
    known += std::string(", ") + kind.name;
  }
  throw UsageError("data.augment = '{}': there is no '{}'; choose from none, crop-flip{}", all,
                   name, known);
}

// What is erased moves with the places.
bool InOrder(const AugmentKind& before, const AugmentKind& after) {
  return before.part <= after.part || (before.part == kErased && after.part == kPlaces);
}

}  // namespace

std::span<const AugmentKind> AugmentKinds() { return kKinds; }

Augment::Augment(std::string_view kinds, uint64_t seed, const AugmentContext& context,
                 const Normalizer& normalizer)
    : seed_(Hash(seed, kStream)),
      context_(context),
      scale_(normalizer.scale()),
      shift_(normalizer.shift()) {
  if (kinds == "none") return;
  for (const std::string& name : Split(kinds == "crop-flip" ? "flip,pad-crop" : kinds, ',')) {
    Add(FindKind(Trim(name), kinds), kinds);
  }
  const SampleShape& shape = context.shape;
  if (shape.width == 1) {
    throw UsageError("data.augment = '{}' needs images, but a sample is {} x {} x {}", kinds,
                     shape.height, shape.width, shape.channels);
  }
  for (int x = 0; x < shape.width; ++x) black_.insert(black_.end(), shift_.begin(), shift_.end());
}

void Augment::Add(const AugmentKind& kind, std::string_view kinds) {
  for (const auto& known : {frames_, changes_, mixes_}) {
    if (std::ranges::find(known, &kind) == known.end()) continue;
    throw UsageError("data.augment = '{}' names {} twice", kinds, kind.name);
  }
  for (const auto& earlier : {changes_, mixes_}) {
    for (const AugmentKind* const before : earlier) {
      if (InOrder(*before, kind)) continue;
      throw UsageError("data.augment = '{}' has {} after {}, but it is applied before; swap them",
                       kinds, kind.name, before->name);
    }
  }
  if (kind.of_bytes && !context_.bytes) {
    throw UsageError(
        "data.augment = '{}': {} needs images of bytes, but these have other values; leave it out",
        kinds, kind.name);
  }
  if (context_.cut && kind.frame != nullptr) {
    frames_.push_back(&kind);
  } else if (kind.change != nullptr) {
    changes_.push_back(&kind);
  } else if (kind.mix != nullptr) {
    mixes_.push_back(&kind);
  } else {
    throw UsageError(
        "data.augment = '{}': {} works only with images:DIR and pack:FILE, which are cut when "
        "they are read",
        kinds, kind.name);
  }
}

ByteLook Augment::look() const {
  return {context_.shape.height, context_.shape.width, context_.shape.channels, scale_.data(),
          shift_.data()};
}

uint64_t Augment::Draw(int64_t epoch, int64_t sample) const {
  return Hash(seed_, static_cast<uint64_t>(epoch), static_cast<uint64_t>(sample));
}

Framing Augment::Frame(int64_t epoch, int64_t sample) const {
  Framing framing;
  if (frames_.empty()) return framing;
  const uint64_t draw = Draw(epoch, sample);
  for (const AugmentKind* kind : frames_) kind->frame(context_, draw, framing);
  return framing;
}

SampleMix Augment::Mix(int64_t epoch, int64_t sample, int64_t size) const {
  SampleMix mix;
  if (mixes_.empty()) return mix;
  const Random random(Hash(Draw(epoch, sample), kMixStream));
  mix.other = static_cast<int64_t>(random.Bits(0) % static_cast<uint64_t>(size));
  if (mix.other == sample) return mix;
  mixes_[random.Bits(1) % mixes_.size()]->mix(context_, random.Bits(2), mix);
  return mix;
}

SampleChange Augment::Change(int64_t epoch, int64_t sample) const {
  SampleChange change;
  if (changes_.empty()) return change;
  const uint64_t draw = Draw(epoch, sample);
  for (const AugmentKind* kind : changes_) kind->change(context_, draw, change);
  return change;
}

void Augment::MapPicture(const PlaceMap& map, std::span<float> picture,
                         std::vector<float>& scratch) const {
  const SampleShape& shape = context_.shape;
  scratch.assign(picture.begin(), picture.end());
  float* to = picture.data();
  for (int y = 0; y < shape.height; ++y) {
    for (int x = 0; x < shape.width; ++x) {
      const Spot spot = SpotOf(map, shape.height, shape.width, y, x);
      for (int c = 0; c < shape.channels; ++c) {
        *to++ = Between(spot, [&](int row, int column) {
          const bool inside = row >= 0 && row < shape.height && column >= 0 && column < shape.width;
          const ptrdiff_t at = (ptrdiff_t{row} * shape.width + column) * shape.channels + c;
          return inside ? scratch[static_cast<size_t>(at)] : shift_[static_cast<size_t>(c)];
        });
      }
    }
  }
}

void Augment::Apply(const SampleChange& change, std::span<float> picture,
                    std::vector<float>& scratch) const {
  const SampleShape& shape = context_.shape;
  if (change.mirrored) MirrorPicture(shape, picture);
  if (change.down || change.right) {
    MovePicture(shape, black_, change.down, change.right, picture);
  }
  if (change.map != PlaceMap()) MapPicture(change.map, picture, scratch);
  if (change.colours != ColourChange()) RecolourPicture(change.colours, look(), picture);
  for (ptrdiff_t y = change.top; y < change.bottom && change.left < change.end; ++y) {
    std::fill_n(picture.data() + (y * shape.width + change.left) * shape.channels,
                ptrdiff_t{change.end - change.left} * shape.channels, 0.0f);
  }
}

void Augment::Apply(const SampleMix& mix, std::span<const float> other,
                    std::span<float> picture) const {
  if (mix.share <= 0) return;
  const bool everywhere = mix.top == mix.bottom;
  for (size_t i = 0; everywhere && i < picture.size(); ++i) {
    picture[i] = (1 - mix.share) * picture[i] + mix.share * other[i];
  }
  const ptrdiff_t c = context_.shape.channels;
  for (ptrdiff_t y = mix.top; y < mix.bottom; ++y) {
    const ptrdiff_t at = (y * context_.shape.width + mix.left) * c;
    std::copy_n(other.data() + at, (mix.end - mix.left) * c, picture.data() + at);
  }
}

}  // namespace trireme
