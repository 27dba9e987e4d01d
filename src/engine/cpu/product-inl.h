// Matrix products of one target, declared for the kernels that use them (product.cc, direct.cc).
#if defined(TRIREME_ENGINE_CPU_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_ENGINE_CPU_PRODUCT_INL_H_
#undef TRIREME_ENGINE_CPU_PRODUCT_INL_H_
#else
#define TRIREME_ENGINE_CPU_PRODUCT_INL_H_
#endif

#include "base/team.h"
#include "engine/cpu/bf16/unit.h"
#include "engine/cpu/tiling/patches.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::cpu::HWY_NAMESPACE {

// B as it lies: plain, b[k][column]; or transposed, with taps taken in a grid: b[tap][column][depth
// of a tap].
struct Unpacked {
  const float* values;
  size_t columns;
  const TapGrid* taps = nullptr;
};
// C = patches * B, `rows` rows of patches. Each returns after all threads are done. `panels` holds
// PanelScratch floats. With `positive`, a matrix that lies as C does: C is 0 where it is not
// positive, as a relu's gradient is.
void MultiplyPatches(const Patches& patches, size_t rows, const Unpacked& b, float* panels,
                     const Places& places, const Finish& finish, float* scratch, Team& team,
                     const float* positive = nullptr);
// C[depth of patches][columns] = transposed patches * b, b[rows][columns]
void MultiplyTransposedPatches(const Patches& patches, size_t rows, const float* b, size_t columns,
                               float* c, bool add, float* scratch, Team& team);

size_t PanelScratch(size_t depth, size_t columns);
size_t MultiplyScratch(size_t threads);
size_t MultiplyTransposedScratch(size_t rows, size_t depth, size_t columns, size_t threads);

// Small or thin products straight from where the matrices lie.
struct Strided {
  const float* data;
  size_t row_stride, depth_stride;
};
// c[rows][columns] = a * b, b[depth][columns]
void MultiplyDirectly(const Strided& a, size_t rows, size_t depth, const float* b, size_t columns,
                      float* c, const Finish& finish, Team& team);

// c[rows][columns] = a[rows][depth] * transposed b[columns][depth], for long rows.
void MultiplyTransposedDirectly(const float* a, size_t rows, size_t depth, const float* b,
                                size_t columns, float* c, Team& team);

// c[depth][columns] (+)= transposed a[rows][depth] * b[rows][columns], with vectors along the
// depth.
void MultiplyTransposedFew(const float* a, size_t rows, size_t depth, const float* b,
                           size_t columns, float* c, bool add, float* scratch, Team& team);
size_t MultiplyTransposedFewScratch(size_t rows, size_t depth, size_t columns);
// Whether columns are so few that it is the fastest.
bool HasFewColumns(size_t rows, size_t depth, size_t columns);

// sums[columns] (+)= the sum over rows of x[rows][columns], in an order that depends on the sizes
// alone.
void SumRows(const float* x, size_t rows, size_t columns, float* sums, bool add, float* scratch,
             Team& team);
void SumRows(const BFloat* x, size_t rows, size_t columns, float* sums, bool add, float* scratch,
             Team& team);
size_t SumRowsScratch(size_t rows, size_t columns);

}  // namespace trireme::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
