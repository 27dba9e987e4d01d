#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

// Instructions that multiply matrices of bf16 and add up in float32. Highway knows none of them:
// each has a file of its own, compiled for it, and a check at run time.

namespace trireme::cpu {

struct WeightGradientKernels;

using BFloat = uint16_t;  // the bits of a bf16: the upper half of a float

// Where a tile of C goes.
struct TileTarget {
  // Pointers to the first column of C's rows. One of them is null: C holds floats or bf16.
  float* const* floats;
  BFloat* const* bfloats;
  size_t count;                // rows of the tile that are C's
  size_t first;                // column of the tile
  size_t columns;              // columns of the tile that are C's
  const float* const* before;  // rows that are added, likewise; or null. They may be C's own.
  const float* bias;           // of C's first column, or null
  bool relu;
  bool stream;  // past the caches; rows are aligned, columns whole vectors, of bf16 cache lines
};

struct ImageUnit;

// A tile of A is `rows` lines, a tile of B `columns` lines, packed in bf16 in an order that is the
// unit's own: so many lines times k, rounded up to whole steps and filled up with zeros. Tiles of
// consecutive stretches of k, each of whole steps, stand one after another.
struct MatrixUnit {
  std::string_view name;
  size_t rows, columns;  // of a tile of C
  size_t step;           // values of k
  size_t depth;          // values of k to add up before C is touched: so much of A stays close

  // Empty: this machine has it. Else what is missing.
  std::string (*missing)();

  // Around all that a thread does with the other functions; what they pack stays.
  void (*begin)();
  void (*end)();

  // Floats become the nearest bf16, ties to even. `count` lines are there, the others of a tile
  // are zeros; so is what a null pointer stands for.
  //   along   lines[line][k]
  //   across  lines[k][line]
  template <class T>
  using Pack = void (*)(const T* const* lines, size_t count, size_t depth, BFloat* to);
  template <class T>
  struct Packers {
    Pack<T> rows_along, rows_across;  // A
    Pack<T> columns_across;           // B
  };
  Packers<float> floats;
  Packers<BFloat> bfloats;
  Pack<float> pack_columns_along;  // B: only weights lie so

  template <class T>
  const Packers<T>& from() const {
    if constexpr (sizeof(T) == sizeof(float)) {
      return floats;
    } else {
      return bfloats;
    }
  }

  // C = A * B for one tile, or added to it. Each element is summed up in an order that depends on
  // the depth alone.
  void (*multiply)(size_t depth, const BFloat* a, const BFloat* b, const TileTarget& into);

  // Kernels of its own for weight gradients, dy in bf16: the first that takes a shape.
  std::span<const WeightGradientKernels* const> weight_gradients = {};

  // Multiplications and additions per second are counted with it: `rounds` rounds of products that
  // touch no memory; gives how many operations they were.
  double (*run_chains)(size_t rounds);

  // Products whose A is not packed (images.h). Null: none.
  const ImageUnit* images = nullptr;
};

// Those that this program was built with, the best first.
std::span<const MatrixUnit* const> AllMatrixUnits();

// The best one of this machine, or null.
const MatrixUnit* FindMatrixUnit();

// Why there is none: what each of them misses.
std::string WhyNoMatrixUnit();

}  // namespace trireme::cpu
