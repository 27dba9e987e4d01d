// AMX: products of matrices whose rows lie in memory as tiles take them (convolutions of one tap).
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "engine/cpu/bf16/amx_images.h"
#include "hwy/base.h"

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile,amx-bf16,prfchw")
namespace trireme::cpu::amx {
namespace {

constexpr size_t kRows = 2 * 16, kColumns = 32;

#include "engine/cpu/bf16/x86-inl.h"
// After it:
#include "engine/cpu/bf16/amx_block-inl.h"

constexpr size_t kLine = 64 / sizeof(BFloat);  // values of a cache line

// A stretch of A that is fetched bit by bit.
class Ahead {
 public:
  Ahead(const BFloat* from, size_t values, size_t portions)
      : at_(from), end_(from + values), portion_((values / kLine + portions - 1) / portions) {}
  void Fetch() {
    for (size_t i = 0; i < portion_ && at_ < end_; ++i, at_ += kLine) {
      _mm_prefetch(reinterpret_cast<const char*>(at_), _MM_HINT_T1);
    }
  }

 private:
  const BFloat *at_, *end_;
  size_t portion_;
};

}  // namespace

void MultiplyRows(const RowProduct& p, size_t begin, size_t end, size_t panel_begin,
                  size_t panel_end) {
  const size_t all = ~size_t{0}, panel = p.depth * kColumns, stride = p.depth * sizeof(BFloat);
  // More is written than read: then reading must not wait for it.
  const bool wide = p.columns > p.depth;
  LateBlocks blocks({p.columns, 0, all, all}, p.finish);
  ShapeTiles(kTileRows);
  for (size_t first = begin; first < end; first += p.group) {
    const size_t last = std::min(end, first + p.group), next = std::min(end, last + p.group);
    Ahead ahead(p.a + last * p.depth, wide ? (next - last) * p.depth : 0,
                (panel_end - panel_begin) * ((last - first + kRows - 1) / kRows));
    for (size_t j = panel_begin; j < panel_end; ++j) {
      for (size_t row = first; row < last; row += kRows) {
        // Of fewer rows than a block's the second tile may begin with the first one's last.
        const size_t count = std::min(kRows, last - row), tile = (count + 1) / 2;
        const size_t second = row + count - tile;
        const TileRows rows[] = {{p.c + row * p.columns, 0, tile},
                                 {p.c + second * p.columns, 0, tile}};
        if (count < kRows) ShapeTiles(tile);
        if (wide) {
          blocks.Prefetch(rows[0], j * kColumns);
          blocks.Prefetch(rows[1], j * kColumns);
        }
        ahead.Fetch();
        blocks.Begin();
        blocks.Add(p.a + row * p.depth, p.a + second * p.depth, stride, p.depth,
                   p.panels + j * panel);
        blocks.End(rows[0], rows[1], j * kColumns);
        if (count < kRows) ShapeTiles(kTileRows);
      }
    }
  }
  blocks.Flush();
  _mm_sfence();  // after streams
  _tile_release();
}

}  // namespace trireme::cpu::amx
HWY_POP_ATTRIBUTES
