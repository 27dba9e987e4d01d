#pragma once
#include <cstddef>

#include "base/team.h"
#include "engine/cpu/bf16/images.h"
#include "engine/cpu/tiling/patches.h"

// Convolutions and their input gradients on units that load tiles from images as they lie
// (MatrixUnit::images). Results are bf16; images are bf16, or floats that are rounded on the way.
// The bits of a result depend on the shape alone.

namespace trireme::cpu::bf16 {

// Whether the unit computes it so. Else: MultiplyPatches of product.h, which any shape suits.
bool ConvolvesImages(const MatrixUnit& unit, const ConvShape& s);
bool ConvolvesImagesBack(const MatrixUnit& unit, const ConvShape& s);

// y = convolution of `count` images x with weights[kernel][kernel][in][out].
template <class From>
void ConvolveImages(const MatrixUnit& unit, const ConvShape& s, size_t count, const From* x,
                    const float* weights, BFloat* y, const Finish& finish, BFloat* scratch,
                    Team& team);
// dx, from the gradient of the output.
template <class From>
void ConvolveImagesBack(const MatrixUnit& unit, const ConvShape& s, size_t count, const From* dy,
                        const float* weights, BFloat* dx, const Finish& finish, BFloat* scratch,
                        Team& team);

// In BFloats, whole cache lines, for images that are bf16 (`narrow`) or floats.
size_t ConvolveImagesScratch(const MatrixUnit& unit, const ConvShape& s, size_t count, bool narrow,
                             size_t threads);
size_t ConvolveImagesBackScratch(const MatrixUnit& unit, const ConvShape& s, size_t count,
                                 bool narrow, size_t threads);

}  // namespace trireme::cpu::bf16
