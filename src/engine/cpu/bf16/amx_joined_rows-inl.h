// Rows of taps of float32 images with few channels. To be included after amx_blocks-inl.h.

// The values of x that a row of taps meets at an output, as a line of bf16: they lie side by side.
struct JoinedRows {
  const float* image;
  const TapPlan& plan;

  // lines[i]: those of place begin + i of a phase; `count` lines, put together in `store`.
  void Lines(size_t phase, size_t begin, size_t count, const BFloat* zeros, BFloat* store,
             const BFloat** lines) const {
    const ConvShape& s = plan.shape;
    const size_t first_row = plan.phases[phase].y, columns = plan.grid_columns;
    size_t column = begin % columns, row = begin / columns % plan.grid_rows;
    const float* sample = image + begin / columns / plan.grid_rows * s.in_pixels() * s.in;
    for (size_t i = 0; i < count; ++i, store += kBlock) {
      const size_t pixel_row = row * s.stride + first_row;
      if (pixel_row < s.height && column < s.out_width) {
        StoreLine(sample + pixel_row * s.width * s.in,
                  ptrdiff_t(column * s.stride) - ptrdiff_t(s.padding), store);
        lines[i] = store;
      } else {
        lines[i] = zeros;
      }
      if (++column < columns) continue;
      column = 0;
      if (++row < plan.grid_rows) continue;
      row = 0;
      sample += s.in_pixels() * s.in;
    }
  }

 private:
  // From a pixel on; zeros for what lies outside of the image's row.
  void StoreLine(const float* row, ptrdiff_t pixel, BFloat* to) const {
    const ConvShape& s = plan.shape;
    const ptrdiff_t first = pixel * ptrdiff_t(s.in), all = ptrdiff_t(s.width * s.in);
    const size_t outside = size_t(std::clamp<ptrdiff_t>(-first, 0, kBlock));
    const size_t end = size_t(std::clamp<ptrdiff_t>(all - first, 0, ptrdiff_t(plan.row_values)));
    const uint64_t mask = ((uint64_t{1} << end) - 1) & ~((uint64_t{1} << outside) - 1);
    const __m512 low = _mm512_maskz_loadu_ps(__mmask16(mask), row + first);
    const __m512 high = _mm512_maskz_loadu_ps(__mmask16(mask >> 16), row + first + 16);
    _mm512_store_si512(to, Narrow(low, high));
  }
};
