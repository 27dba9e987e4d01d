// Two tiles of A, loaded from where their rows lie, times a panel of B: four registers of sums.
// What becomes of a block's sums is done beside the next block's products, one block late. To be
// included after x86-inl.h.

inline constexpr size_t kTileRows = 16;  // the most
inline constexpr size_t kTileSums = kTileRows * kColumns;

// Registers 0 to 3 are sums, 4 and 5 of A, 6 and 7 of B. Gives up what they hold.
inline void ShapeTiles(size_t rows) {
  struct alignas(64) {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {};
  } shape;
  for (size_t i = 0; i < 8; ++i) shape.rows[i] = uint8_t(i < 6 ? rows : kTileRows);
  asm volatile("" : : "r"(&shape) : "memory");  // gcc does not see that all of it is read
  _tile_loadconfig(&shape);
}

// Where the rows of a tile go: `count` places from place `x` of a line on, those from `width` on
// are not C's.
struct TileRows {
  BFloat* line;  // of the first row
  size_t x, count;
};
struct RowPlaces {
  size_t x_stride, line_stride, width, line;  // `line` places are a line
};

// Goes through the rows of a tile.
class RowCursor {
 public:
  RowCursor(const RowPlaces& places, const TileRows& rows)
      : places_(places), line_(rows.line), x_(rows.x) {}
  bool inside() const { return x_ < places_.width; }
  BFloat* at() const { return line_ + x_ * places_.x_stride; }
  void Next() {
    if (++x_ < places_.line) return;
    x_ = 0;
    line_ += places_.line_stride;
  }

 private:
  const RowPlaces& places_;
  BFloat* line_;
  size_t x_;
};

// The products of one thread, block by block.
class LateBlocks {
 public:
  LateBlocks(const RowPlaces& places, const Finish& finish) : places_(places), finish_(finish) {}

  // Rows of C into the first cache, where they are not streamed.
  void Prefetch(const TileRows& rows, size_t column) const {
    if (finish_.stream) return;
    RowCursor row(places_, rows);
    for (size_t r = 0; r < rows.count; ++r, row.Next()) {
      if (row.inside()) __builtin_prefetch(row.at() + column, 1);
    }
  }

  static void Begin() {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }

  // Adds the products of `depth` values of each row; rows stand `stride` bytes apart.
  static void Add(const BFloat* first, const BFloat* second, size_t stride, size_t depth,
                  const BFloat* panel) {
    for (size_t k = 0; k < depth; k += kStep, panel += kColumns * kStep) {
      _tile_loadd(6, panel, 128);
      _tile_loadd(4, first + k, stride);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, panel + 32, 128);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(5, second + k, stride);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }

  // The block's sums go to these rows of C, a panel's columns from `column` on.
  void End(const TileRows& first, const TileRows& second, size_t column) {
    Flush();
    float* sums = sums_[now_];
    asm volatile("" : : : "memory");  // gcc does not see that tile instructions touch memory
    _tile_stored(0, sums, 128);
    _tile_stored(1, sums + kLanes, 128);
    _tile_stored(2, sums + kTileSums, 128);
    _tile_stored(3, sums + kTileSums + kLanes, 128);
    asm volatile("" : : : "memory");
    late_[0] = first;
    late_[1] = second;
    column_ = column;
    now_ ^= 1;
  }

  // Stores what is late.
  void Flush() {
    for (size_t i = 0; i < 2; ++i) {
      const float* sums = sums_[now_ ^ 1] + i * kTileSums;
      if (finish_.bias || finish_.relu) {
        Store<true, false>(sums, late_[i]);
      } else if (finish_.stream) {
        Store<false, true>(sums, late_[i]);
      } else {
        Store<false, false>(sums, late_[i]);
      }
      late_[i].count = 0;
    }
  }

 private:
  template <bool kFinish, bool kStream>
  void Store(const float* sums, const TileRows& rows) const {
    __m512 bias_low = _mm512_setzero_ps(), bias_high = bias_low;
    if (kFinish && finish_.bias) {
      bias_low = _mm512_loadu_ps(finish_.bias + column_);
      bias_high = _mm512_loadu_ps(finish_.bias + column_ + kLanes);
    }
    RowCursor row(places_, rows);
    for (size_t r = 0; r < rows.count; ++r, row.Next(), sums += kColumns) {
      if (!row.inside()) continue;
      __m512 low = _mm512_load_ps(sums), high = _mm512_load_ps(sums + kLanes);
      if (kFinish) {
        low = _mm512_add_ps(low, bias_low);
        high = _mm512_add_ps(high, bias_high);
        if (finish_.relu) {
          low = PositivePart(low);
          high = PositivePart(high);
        }
      }
      BFloat* to = row.at() + column_;
      if (kStream || (kFinish && finish_.stream)) {
        _mm512_stream_si512(reinterpret_cast<__m512i*>(to), Narrow(low, high));
      } else {
        _mm512_storeu_si512(to, Narrow(low, high));
      }
    }
  }

  const RowPlaces places_;
  const Finish finish_;
  TileRows late_[2] = {};
  size_t column_ = 0, now_ = 0;
  alignas(64) float sums_[2][2 * kTileSums];
};
