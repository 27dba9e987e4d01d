#pragma once
#include <cstdint>
#include <string>

#include "image/geometry.h"

namespace trireme {

// The bytes of a PNG file with these RGB pixels, row by row.
std::string EncodePng(const uint8_t* rgb, PictureSize size);

}  // namespace trireme
