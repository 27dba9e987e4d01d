#include "engine/cpu/bf16/patch_tiles.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace trireme::cpu::bf16 {
namespace {

constexpr size_t kMostLines = 32;   // of a tile
constexpr size_t kGathered = 256;   // values of a row that are put together at once
constexpr size_t kWorthACall = 32;  // bytes of a copy

}  // namespace

template <class T>
const T* PatchTiles<T>::Pixel(const Row& row, ptrdiff_t tap_y, ptrdiff_t tap_x) const {
  const PatchesOf<T>& p = patches_;
  const ptrdiff_t y = row.y + tap_y * p.tap_step, x = row.x + tap_x * p.tap_step;
  if (size_t(y) >= size_t(p.height) || size_t(x) >= size_t(p.width)) return nullptr;
  return row.image + (y * p.width + x) * p.channels;
}

template <class T>
void PatchTiles<T>::Gather(const Row& row, size_t begin, size_t end, T* to) const {
  const bool whole = HasWholeLines(row);
  const size_t run = whole ? line_ : channels_;
  size_t tap_y = begin / line_, tap_x = whole ? 0 : begin % line_ / channels_, skip = begin % run;
  for (size_t at = begin; at < end;) {
    const size_t n = std::min(end - at, run - skip);
    const T* pixel = Pixel(row, ptrdiff_t(tap_y), ptrdiff_t(tap_x));
    if (pixel && n * sizeof(T) >= kWorthACall) {
      std::memcpy(to, pixel + skip, n * sizeof(T));
    } else if (pixel) {
      for (size_t i = 0; i < n; ++i) to[i] = pixel[skip + i];
    } else {
      std::fill_n(to, n, T(0));
    }
    at += n;
    to += n;
    skip = 0;
    if (whole || ++tap_x == patches_.taps_x) tap_x = 0, ++tap_y;
  }
}

template <class T>
void PatchTiles<T>::PackAlong(const Row* rows, size_t count, size_t begin, size_t end,
                              BFloat* to) const {
  TRIREME_ASSERT(count <= kMostLines);
  const T* lines[kMostLines];
  if (IsOneTap() || channels_ % unit_.step == 0) {
    const bool whole =
        std::all_of(rows, rows + count, [&](const Row& row) { return HasWholeLines(row); });
    const size_t run = whole ? line_ : channels_;
    for (size_t at = begin; at < end;) {
      const size_t skip = at % run, n = std::min(end - at, run - skip), in_line = at % line_ - skip;
      const ptrdiff_t tap_y = ptrdiff_t(at / line_), tap_x = ptrdiff_t(in_line / channels_);
      for (size_t r = 0; r < count; ++r) {
        const T* pixel = Pixel(rows[r], tap_y, tap_x);
        lines[r] = pixel ? pixel + skip : nullptr;
      }
      unit_.from<T>().rows_along(lines, count, n, to + (at - begin) * unit_.rows);
      at += n;
    }
    return;
  }
  T values[kMostLines][kGathered];
  for (size_t r = 0; r < count; ++r) lines[r] = values[r];
  for (size_t at = begin; at < end; at += kGathered) {
    const size_t last = std::min(end, at + kGathered);
    for (size_t r = 0; r < count; ++r) Gather(rows[r], at, last, values[r]);
    unit_.from<T>().rows_along(lines, count, last - at, to + (at - begin) * unit_.rows);
  }
}

template <class T>
void PatchTiles<T>::PackAcross(const Row* rows, size_t depth, size_t begin, size_t end,
                               size_t tile_size, BFloat* to) const {
  constexpr size_t kRowsAtOnce = 32;  // whole steps of every unit
  TRIREME_ASSERT(kRowsAtOnce % unit_.step == 0 && end - begin <= kGathered);
  const PatchesOf<T>& p = patches_;
  const bool in_place = IsOneTap() || (channels_ % unit_.rows == 0 && begin % unit_.rows == 0);
  T values[kRowsAtOnce][kGathered];
  const T *lines[kRowsAtOnce], *pixels[kRowsAtOnce];
  for (size_t k = 0; k < depth; k += kRowsAtOnce, to += kRowsAtOnce * unit_.rows) {
    const size_t count = std::min(kRowsAtOnce, depth - k);
    for (size_t i = 0; !in_place && i < count; ++i) Gather(rows[k + i], begin, end, values[i]);
    size_t tap = size_t(-1);
    for (size_t at = begin, tile = 0; at < end; at += unit_.rows, ++tile) {
      if (in_place && tap != at / channels_) {
        tap = at / channels_;
        const ptrdiff_t tap_y = ptrdiff_t(tap / p.taps_x), tap_x = ptrdiff_t(tap % p.taps_x);
        for (size_t i = 0; i < count; ++i) pixels[i] = Pixel(rows[k + i], tap_y, tap_x);
      }
      for (size_t i = 0; i < count; ++i) {
        lines[i] = !in_place   ? values[i] + (at - begin)
                   : pixels[i] ? pixels[i] + (at - tap * channels_)
                               : nullptr;
      }
      unit_.from<T>().rows_across(lines, std::min(unit_.rows, end - at), count,
                                  to + tile * tile_size);
    }
  }
}

template class PatchTiles<float>;
template class PatchTiles<BFloat>;

}  // namespace trireme::cpu::bf16
