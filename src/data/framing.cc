#include "data/framing.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace trireme {
namespace {

constexpr double kWidest = 4.0 / 3;
constexpr int kTries = 10;

Box Centre(PictureSize picture, double width, double height) {
  const int w = std::clamp(static_cast<int>(std::lround(width)), 1, picture.width);
  const int h = std::clamp(static_cast<int>(std::lround(height)), 1, picture.height);
  return {(picture.width - w) / 2, (picture.height - h) / 2, w, h};
}

Box RandomPart(const Framing& framing, PictureSize picture) {
  const Random random(framing.key);
  const double area = double(picture.width) * picture.height;
  for (uint64_t i = 0; i < kTries; ++i) {
    const double share = framing.least_area + (1 - framing.least_area) * random.Uniform(4 * i);
    const double shape = std::exp(std::log(kWidest) * (2 * random.Uniform(4 * i + 1) - 1));
    const int width = static_cast<int>(std::lround(std::sqrt(area * share * shape)));
    const int height = static_cast<int>(std::lround(std::sqrt(area * share / shape)));
    if (width < 1 || height < 1 || width > picture.width || height > picture.height) continue;
    return {static_cast<int>(random.Uniform(4 * i + 2) * (picture.width - width + 1)),
            static_cast<int>(random.Uniform(4 * i + 3) * (picture.height - height + 1)), width,
            height};
  }
  // A very long or high picture: as much of its middle as the shape allows.
  return Centre(picture, std::min<double>(picture.width, picture.height * kWidest),
                std::min<double>(picture.height, picture.width * kWidest));
}

}  // namespace

View ChooseView(const Framing& framing, PictureSize picture, double centre) {
  const double side = centre * std::min(picture.width, picture.height);
  return {framing.least_area > 0 ? RandomPart(framing, picture) : Centre(picture, side, side),
          framing.mirrored};
}

}  // namespace trireme
