#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "image/filter.h"

// The loops of a resize, vectorised. Multiplied and added one after the other on every machine, so
// the bits are the same.
namespace trireme::rows {

// out[i] = the sum of weights[t] * lines[t][i].
void Blend(std::span<const uint8_t* const> lines, const float* weights, size_t n, float* out);

// A line of RGB pixels through a filter, each value times its channel's scale plus its shift (four
// numbers each, the last is not used). Three floats behind `line`'s end are read, not used.
void Across(const float* line, const Filter& filter, const float* scale, const float* shift,
            float* out);

// Rounded and kept between 0 and 255.
void Round(const float* in, size_t n, uint8_t* out);

}  // namespace trireme::rows
