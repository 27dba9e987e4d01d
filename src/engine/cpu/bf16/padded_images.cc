#include "engine/cpu/bf16/padded_images.h"

#include <cstring>
#include <type_traits>

namespace trireme::cpu::bf16 {
namespace {

void CopyValues(const ImageUnit&, const BFloat* from, size_t count, BFloat* to) {
  std::memcpy(to, from, count * sizeof(BFloat));
}
void CopyValues(const ImageUnit& unit, const float* from, size_t count, BFloat* to) {
  unit.narrow(from, count, to);
}

}  // namespace

template <class From>
void PaddedImages::Copy(const ImageUnit& unit, const From* image, size_t first,
                        size_t product_lines, size_t plane_values, BFloat* to) const {
  const size_t lines = Lines(product_lines);
  for (size_t plane = 0; plane < planes * planes; ++plane, to += plane_values) {
    const size_t rest_x = plane % planes;
    // Pixel i of a line is the image's i * step + rest_x - left.
    const auto count_below = [&](size_t x) {
      return std::min(line, x > rest_x ? (x - rest_x + step - 1) / step : 0);
    };
    const size_t begin = count_below(left), end = count_below(left + width);
    BFloat* at = to;
    for (size_t i = 0; i < lines; ++i, at += line * channels) {
      const size_t y = (first * line_step + i) * step + plane / planes;  // and `top`
      if (y < top || y >= top + height) {
        std::fill_n(at, line * channels, BFloat(0));
        continue;
      }
      std::fill_n(at, begin * channels, BFloat(0));
      const From* from = image + (y - top) * width * channels;
      const From* pixel = from + (begin * step + rest_x - left) * channels;
      if (step == 1) {
        CopyValues(unit, pixel, (end - begin) * channels, at + begin * channels);
      } else {
        for (size_t x = begin; x < end; ++x, pixel += step * channels) {
          CopyValues(unit, pixel, channels, at + x * channels);
        }
      }
      std::fill_n(at + end * channels, (line - end) * channels, BFloat(0));
    }
    std::fill_n(at, tail * channels, BFloat(0));
  }
}

template void PaddedImages::Copy(const ImageUnit&, const BFloat*, size_t, size_t, size_t,
                                 BFloat*) const;
template void PaddedImages::Copy(const ImageUnit&, const float*, size_t, size_t, size_t,
                                 BFloat*) const;

}  // namespace trireme::cpu::bf16
