// AMX: convolutions of several taps over padded images in the second cache. A tap is an offset to
// the address of a tile: nothing is written down more than once.
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

constexpr size_t kShortLine = 12;  // pixels; tiles of so few rows would be slow

size_t CountOf(size_t all, size_t each) { return (all + each - 1) / each; }

// How the places of an image are cut into tiles: each line by itself, or, where lines are short or
// hold nothing else, all of them in one piece. Then a tile meets places that are not C's.
struct Cut {
  size_t line;      // places from a line to the next; of one piece: no more than there are
  size_t pieces;    // of an image
  size_t length;    // of a piece, in places
  size_t rows;      // of a tile
  size_t in_piece;  // tiles

  explicit Cut(const TapProduct& p) : line(p.a_line / p.a_x), pieces(p.lines), length(p.width) {
    const bool whole =
        p.a_line % p.a_x == 0 && (line == p.width || (line > p.width && p.width < kShortLine));
    if (whole) pieces = 1, length = (p.lines - 1) * line + p.width;
    rows = CountOf(length, CountOf(length, kTileRows));
    in_piece = CountOf(length, rows);
    if (!whole) line = ~size_t{0};
  }
};

struct Tile {
  const BFloat* a;
  TileRows rows;
};

// Goes through the tiles of all images.
class TileCursor {
 public:
  TileCursor(const TapProduct& p, const Cut& cut) : p_(p), cut_(cut) {}
  Tile Next() {
    const size_t place = tile_ * cut_.rows;
    const BFloat* a = p_.a + image_ * p_.a_image + piece_ * p_.a_line + place * p_.a_x;
    BFloat* c = p_.c + image_ * p_.c_image + piece_ * p_.c_line;
    size_t x = place;
    if (cut_.pieces == 1) {
      c += place / cut_.line * p_.c_line;
      x = place % cut_.line;
    }
    const Tile tile{a, {c, x, std::min(cut_.rows, cut_.length - place)}};
    if (++tile_ == cut_.in_piece) tile_ = 0, ++piece_;
    if (piece_ == cut_.pieces) piece_ = 0, ++image_;
    return tile;
  }

 private:
  const TapProduct& p_;
  const Cut& cut_;
  size_t image_ = 0, piece_ = 0, tile_ = 0;
};

}  // namespace

void MultiplyTaps(const TapProduct& p, size_t panel_begin, size_t panel_end) {
  const Cut cut(p);
  const size_t tiles = p.images * cut.pieces * cut.in_piece, stride = p.a_x * sizeof(BFloat);
  LateBlocks blocks({p.c_x, p.c_line, p.width, cut.line}, p.finish);
  ShapeTiles(cut.rows);
  for (size_t j = panel_begin; j < panel_end; ++j) {
    TileCursor cursor(p, cut);
    for (size_t i = 0; i < tiles; i += 2) {
      const Tile first = cursor.Next();
      const Tile second = i + 1 < tiles ? cursor.Next() : Tile{first.a, {first.rows.line, 0, 0}};
      blocks.Prefetch(first.rows, j * kColumns);
      blocks.Prefetch(second.rows, j * kColumns);
      blocks.Begin();
      const BFloat* panel = p.panels + j * p.panel;
      for (const size_t tap : p.taps) {
        blocks.Add(first.a + tap, second.a + tap, stride, p.depth, panel);
        panel += p.tap;
      }
      blocks.End(first.rows, second.rows, j * kColumns);
    }
  }
  blocks.Flush();
  _mm_sfence();  // after streams
  _tile_release();
}

void NarrowLine(const float* from, size_t count, BFloat* to) {
  for (; count > kStep; count -= kStep, from += kStep, to += kStep) {
    _mm512_storeu_si512(to, LoadStep(from, kStep));
  }
  _mm512_mask_storeu_epi16(to, FirstValues(count), LoadStep(from, count));
}

}  // namespace trireme::cpu::amx
HWY_POP_ATTRIBUTES
