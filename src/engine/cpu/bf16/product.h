#pragma once
#include <cstddef>

#include "base/team.h"
#include "engine/cpu/bf16/unit.h"
#include "engine/cpu/tiling/patches.h"

// Matrix products in bf16: operands that are held in float32 are rounded while they are packed,
// sums are float32. The same functions as those of float32 (engine/cpu/product-inl.h), for any
// unit, and for images and results that are held in float32 or in bf16.

namespace trireme::cpu::bf16 {

// Packed panels of B: `columns` wide, `depth` deep. Each returns after all threads are done.
//   plain       b[k][column]
//   transposed  per tap: b[tap][column][depth of a tap], taps taken in a grid
void PackPanels(const MatrixUnit& unit, const float* b, size_t depth, size_t columns,
                BFloat* panels, Team& team);
void PackTransposedPanels(const MatrixUnit& unit, const float* b, const TapGrid& taps,
                          size_t tap_depth, size_t columns, BFloat* panels, Team& team);

// C = patches * B, `rows` rows of patches; nothing is added to what is there. From and To, as
// everything here: float or BFloat.
template <class From, class To>
void MultiplyPatches(const MatrixUnit& unit, const PatchesOf<From>& patches, size_t rows,
                     const BFloat* panels, size_t columns, const PlacesOf<To>& places,
                     const Finish& finish, BFloat* scratch, Team& team);
// C[depth of patches][columns] = transposed patches * b, b[rows][columns]
template <class From, class B>
void MultiplyTransposedPatches(const MatrixUnit& unit, const PatchesOf<From>& patches, size_t rows,
                               const B* b, size_t columns, float* c, bool add, BFloat* scratch,
                               Team& team);

// All in BFloats, whole cache lines.
size_t PanelScratch(const MatrixUnit& unit, size_t depth, size_t columns);
size_t MultiplyScratch(const MatrixUnit& unit, size_t rows, size_t depth, size_t columns,
                       size_t threads);
size_t MultiplyTransposedScratch(const MatrixUnit& unit, size_t rows, size_t depth, size_t columns,
                                 size_t threads);

}  // namespace trireme::cpu::bf16
