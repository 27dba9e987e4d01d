#pragma once
#include <cstdint>
#include <string>

#include "data/source.h"

namespace trireme {

// Whether its samples can be looked at: more than one pixel, of one channel or of three.
bool ShowsPictures(const SampleShape& shape);

// A sample as a network sees it, as a PNG file of at most `side` pixels each way: shrunk, or
// enlarged by a whole factor. Only where ShowsPictures.
std::string ThumbnailOf(const Source& samples, int64_t index, int side);

}  // namespace trireme
