#pragma once
#include <cstdint>
#include <span>

namespace trireme {

// EXIF's orientation, 1 to 8, of a TIFF block (what follows "Exif\0\0" in a JPEG, or a PNG's eXIf).
// Cameras and editors write odd blocks: whatever is damaged counts as 1, upright.
int ReadOrientation(std::span<const uint8_t> tiff);

}  // namespace trireme
