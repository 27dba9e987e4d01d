#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/cpu/bf16/unit.h"
#include "engine/cpu/tiling/patches.h"

// What a unit offers that loads tiles of A from where they lie instead of from packed copies. A and
// C are bf16, sums float32; B is packed in the unit's panels (product.h). Columns are whole panels,
// depths whole steps.

namespace trireme::cpu {

// C[rows][columns] = A[rows][depth] * B.
struct RowProduct {
  const BFloat* a;
  size_t rows, depth;
  const BFloat* panels;
  size_t columns;
  size_t group;  // rows that meet a panel before the next ones do: whole tiles
  BFloat* c;
  Finish finish;
};

// Row (image, line, x) of A is, tap by tap, `depth` values from
// a + image * a_image + line * a_line + x * a_x + taps[tap], that of C begins at
// c + image * c_image + line * c_line + x * c_x. Without taps C becomes zeros. 16 rows of A beyond
// an image's last one may be read; C does not depend on them.
struct TapProduct {
  const BFloat* a;
  size_t images, lines, width;
  size_t a_image, a_line, a_x;
  size_t depth;
  std::span<const size_t> taps;
  const BFloat* panels;
  size_t panel, tap;  // values from one panel, or one tap of a panel, to the next
  BFloat* c;
  size_t c_image, c_line, c_x;
  Finish finish;
};

// Each sums up an element in an order that depends on depth and taps alone. They begin and end the
// unit themselves.
struct ImageUnit {
  // Rows [begin, end), and some of the panels.
  void (*multiply_rows)(const RowProduct& product, size_t begin, size_t end, size_t panel_begin,
                        size_t panel_end);
  void (*multiply_taps)(const TapProduct& product, size_t panel_begin, size_t panel_end);
  // Floats become the nearest bf16, ties to even.
  void (*narrow)(const float* from, size_t count, BFloat* to);
};

}  // namespace trireme::cpu
