#pragma once
#include <array>
#include <cstddef>

#include "flat/arithmetic.h"

// The processor's loops over flat memory, on raw pointers: one pass each, vectorised, chosen for
// the machine's instruction set at run time. Element i of every result depends on elements i alone
// and is computed alike in the vectors and in the tail, so cutting a slice anywhere keeps the bits
// (updates: between blocks).
namespace trireme::loops {

// flat/cpu/combine.cc
void Fill(float value, float* to, size_t n);
void Add(const float* from, float* to, size_t n);
void Blend(float a, const float* x, float b, float* y, size_t n);
void Scale(float a, float* x, size_t n);
void SumInOrder(const float* start, const SliceList& parts, size_t at, float* out,
                size_t n);  // parts + at
void ElasticPull(float alpha, const float* centre, float* weights, float* pull, size_t n);

// flat/cpu/check_and_clip.cc
// Without signs; infinity or NaN exactly if an x is not finite.
float Largest(const float* x, size_t n);
// The sum of products in double, where no finite floats overflow: that of squares (x twice) is not
// finite exactly if an x is not. Its bits depend on x, y, n and the instruction set.
double Dot(const float* x, const float* y, size_t n);

// The gradients that an update meets: written ones, or (values null) from value `at` of an outer
// product on.
struct GradientsAt {
  const float* values;
  const OuterProduct* outer = nullptr;
  size_t at = 0;
};

// What a rule keeps, or null where it keeps nothing.
template <class Rates>
using KeptAt = std::array<float*, Rates::kKeeps>;

// flat/cpu/update.cc, of every rule. Decay of block b of the weights (Layout::kAlignment each):
// decays[b]; or null.
template <class Rates>
void Update(const Rates& r, float factor, const float* decays, const GradientsAt& gradients,
            const KeptAt<Rates>& kept, float* weight, size_t n);
void Track(float momentum, const float* seen, float* running, size_t n);

}  // namespace trireme::loops
