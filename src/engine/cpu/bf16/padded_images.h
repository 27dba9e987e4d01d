#pragma once
#include <algorithm>
#include <cstddef>

#include "engine/cpu/bf16/images.h"
#include "engine/cpu/tiling/patches.h"

namespace trireme::cpu::bf16 {

// How images are copied so that each tap of a convolution is an offset: with zeros around them and,
// for a stride, one plane for each remainder of y and x. Where zeros on the right are no more than
// those on the left, a line ends with its last pixel: the next line's zeros serve both.
struct PaddedImages {
  size_t height, width, channels;  // of an image
  size_t step = 1;                 // of pixels within a plane
  size_t planes = 1;               // for each dimension
  size_t top = 0, left = 0;        // zeros before pixel 0, in pixels of the image
  size_t line = 0;                 // pixels of a plane's line
  size_t line_step = 1;            // lines from one line of the product to the next
  size_t row_step = 1;             // pixels from one row of it to the next
  size_t extra = 0;                // lines beyond the product's last one
  size_t tail = 0;                 // zeros behind the last line

  // What the taps of a forward convolution read.
  static PaddedImages Forward(const ConvShape& s) {
    PaddedImages p{.height = s.height, .width = s.width, .channels = s.in};
    p.step = s.stride;
    p.planes = std::min(s.stride, s.kernel);
    p.top = p.left = s.padding;
    p.extra = (s.kernel - 1) / s.stride;
    p.EndLines(s.out_width + p.extra);
    return p;
  }

  // The same of so few channels that a tap is a line of the kernel: `depth` values of it, of which
  // those behind the kernel's last meet zeros. Values take the place of pixels.
  static PaddedImages ForwardLines(const ConvShape& s, size_t depth) {
    PaddedImages p{.height = s.height, .width = s.width * s.in, .channels = 1};
    p.top = s.padding;
    p.left = s.padding * s.in;
    p.line_step = s.stride;
    p.row_step = s.stride * s.in;
    p.extra = s.kernel - 1;
    p.line = (s.out_width - 1) * p.row_step + depth;
    return p;
  }

  // What those of an input gradient read, whatever the phase.
  static PaddedImages Back(const ConvShape& s) {
    PaddedImages p{.height = s.out_height, .width = s.out_width, .channels = s.out};
    size_t pixels = 0;
    for (size_t i = 0; i < std::min(s.stride, s.height); ++i) {
      const GradPhase phase(i, s.height, s);
      if (phase.taps == 0) continue;
      p.top = std::max(p.top, phase.before());
      p.extra = std::max(p.extra, phase.offset);
    }
    p.extra += p.top;
    for (size_t i = 0; i < std::min(s.stride, s.width); ++i) {
      const GradPhase phase(i, s.width, s);
      if (phase.taps == 0) continue;
      p.left = std::max(p.left, phase.before());
      pixels = std::max(pixels, phase.pixels + phase.offset);
    }
    p.EndLines(p.left + pixels);
    return p;
  }

  // Values of a copy from one row or line of the product to the next.
  size_t row_values() const { return row_step * channels; }
  size_t line_values() const { return line_step * line * channels; }

  // Lines of a plane for so many of the product's.
  size_t Lines(size_t product_lines) const { return (product_lines - 1) * line_step + 1 + extra; }
  size_t PlaneValues(size_t product_lines) const {
    return (Lines(product_lines) * line + tail) * channels;
  }
  size_t ImageValues(size_t product_lines) const {
    return planes * planes * PlaneValues(product_lines);
  }

  // Copies one image, for `product_lines` lines of the product from `first` on; planes stand
  // `plane_values` apart.
  template <class From>
  void Copy(const ImageUnit& unit, const From* image, size_t first, size_t product_lines,
            size_t plane_values, BFloat* to) const;

 private:
  void EndLines(size_t pixels) {  // so many are read
    const size_t right = pixels > left + width ? pixels - left - width : 0;
    const bool shared = step == 1 && right <= left;
    line = step > 1 ? pixels : left + width + (shared ? 0 : right);
    tail = shared ? right : 0;
  }
};

}  // namespace trireme::cpu::bf16
