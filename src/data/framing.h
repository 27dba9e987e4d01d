#pragma once
#include <cstdint>

#include "image/renderer.h"

namespace trireme {

// How a picture that has a size of its own is cut when it is read.
struct Framing {
  double least_area = 0;  // a random part of at least this share of it; 0: the centre
  uint64_t key = 0;       // of the random numbers
  bool mirrored = false;
};

// The size at which pictures are seen where nobody says one.
struct OwnSize {
  int side = 0;        // pixels; 0: the usual one
  bool whole = false;  // without cutting an edge off
  bool operator==(const OwnSize&) const = default;
};

// The view of a picture: a random part, of a shape between 3:4 and 4:3 (Szegedy et al. 2015), or a
// square in the middle with `centre` of the shorter side. A pure function.
View ChooseView(const Framing& framing, PictureSize picture, double centre);

}  // namespace trireme
