// Which images, lines and columns a thread works on, and where the taps of each lie.
#include "engine/cpu/bf16/image_product.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "base/assert.h"
#include "engine/cpu/bf16/padded_images.h"
#include "engine/cpu/bf16/product.h"
#include "engine/cpu/tiling/divide.h"

namespace trireme::cpu::bf16 {
namespace {

// All tuned on Sapphire Rapids.
constexpr size_t kFewRows = 9;                // of an image: tiles would be nearly empty
constexpr size_t kCopied = 320 * 1024;        // BFloats of padded images in the second cache
constexpr size_t kCachedPanels = 512 * 1024;  // BFloats of B beside them, for each thread
constexpr size_t kLineDepth = 64;             // values of a line of taps
// Up to this depth a tile of rows stays in the first cache and meets all panels. Of deeper ones so
// many values stay in the second, and each panel meets all of them.
constexpr size_t kShallow = 1280, kCachedRows = 128 * 1024;

size_t CountOf(size_t all, size_t each) { return (all + each - 1) / each; }
size_t RoundUp(size_t n, size_t to) { return CountOf(n, to) * to; }

// So few channels that a tap is a line of the kernel.
bool TapsAreLines(const MatrixUnit& unit, const ConvShape& s) { return s.in % unit.step != 0; }
size_t LineDepth(const MatrixUnit& unit, const ConvShape& s) {
  return RoundUp(s.kernel * s.in, unit.step);
}

// Row after row of the product stands in memory as it is, if it is held in bf16.
bool IsMatrix(const ConvShape& s) { return s.kernel == 1 && s.stride == 1 && s.padding == 0; }

// A product over images that are copied: some of its rows, with the same taps.
struct Phase {
  size_t lines = 0, width = 0;
  std::vector<size_t> taps = {};
  size_t depth = 0;  // of a tap
  const BFloat* panels = nullptr;
  size_t panel = 0, tap = 0;
  size_t c_first = 0;  // where its first row goes in an image of C
};

// What a thread takes at once: some images, or a stretch of lines of one; and in how many parts the
// columns are cut besides.
struct Portion {
  size_t most;  // images, for any number of threads
  size_t images, lines, parts = 1;

  // At most what the cache holds, and pieces for all threads. Each piece reads its part of the
  // weights: of many weights, better few large pieces with some of the columns each.
  Portion(const PaddedImages& padded, size_t product_lines, size_t weights, size_t panels,
          size_t count, size_t threads)
      : most(1), lines(product_lines) {
    const bool heavy = weights > kCachedPanels;
    const size_t image = padded.ImageValues(product_lines);
    if (image <= kCopied) {
      most = std::clamp(kCopied / image, size_t{1}, count);
    } else {
      lines = CountOf(product_lines, CountOf(image, kCopied));
      while (lines > 1 && padded.ImageValues(lines) > kCopied) --lines;
    }
    images = heavy ? most : std::clamp(count / (2 * threads), size_t{1}, most);
    images = CountOf(count, CountOf(count, images));  // all alike
    const size_t pieces = CountOf(count, images) * CountOf(product_lines, lines);
    parts = std::min(panels, CountOf((heavy ? 2 : 1) * threads, pieces));
  }

  // Tiles reach beyond their last row.
  size_t Scratch(const PaddedImages& padded) const {
    return RoundUp(most * padded.ImageValues(lines) + 16 * padded.row_values() + kLineDepth, 32);
  }
};

// How rows of C lie.
struct Strides {
  size_t image, line, x;
};

template <class From>
struct ImagesTask {
  const MatrixUnit& unit;
  const PaddedImages& padded;
  const Portion& portion;
  size_t count, lines;  // images; lines of the longest phase
  const From* from;
  size_t from_image;
  const std::vector<Phase>& phases;
  BFloat* c;
  Strides places;
  size_t panels;
  const Finish& finish;

  // One portion, some panels of columns.
  void Run(size_t image, size_t line, size_t panel_begin, size_t panel_end, BFloat* copy) const {
    const size_t images = std::min(portion.images, count - image);
    const size_t last = std::min(lines, line + portion.lines);
    const size_t plane = padded.PlaneValues(portion.lines);
    const size_t copied = padded.ImageValues(portion.lines);
    for (size_t i = 0; i < images; ++i) {
      padded.Copy(*unit.images, from + (image + i) * from_image, line, last - line, plane,
                  copy + i * copied);
    }
    for (const Phase& phase : phases) {
      const size_t end = std::min(last, phase.lines);
      if (line >= end || phase.width == 0) continue;
      unit.images->multiply_taps(
          {.a = copy,
           .images = images,
           .lines = end - line,
           .width = phase.width,
           .a_image = copied,
           .a_line = padded.line_values(),
           .a_x = padded.row_values(),
           .depth = phase.depth,
           .taps = phase.taps,
           .panels = phase.panels,
           .panel = phase.panel,
           .tap = phase.tap,
           .c = c + image * places.image + line * places.line + phase.c_first,
           .c_image = places.image,
           .c_line = places.line,
           .c_x = places.x,
           .finish = finish},
          panel_begin, panel_end);
    }
  }

  void RunAll(size_t work, BFloat* scratch, Team& team) const {
    const size_t bands = CountOf(lines, portion.lines);
    const size_t pieces = CountOf(count, portion.images) * bands;
    const size_t parts = portion.parts, own = portion.Scratch(padded);
    const size_t grain = work < kParallelWork ? pieces * parts : 1;
    ParallelFor(team, pieces * parts, grain, [&](size_t begin, size_t end, size_t thread) {
      for (size_t i = begin; i < end; ++i) {
        const size_t part = i / pieces, piece = i % pieces;
        Run(piece / bands * portion.images, piece % bands * portion.lines, panels * part / parts,
            panels * (part + 1) / parts, scratch + thread * own);
      }
    });
  }
};

// C = A * B, A as it lies.
void MultiplyRows(const MatrixUnit& unit, const BFloat* a, size_t rows, size_t depth,
                  const BFloat* packed, size_t columns, BFloat* c, const Finish& finish,
                  Team& team) {
  const size_t tiles = depth <= kShallow ? 1 : std::max<size_t>(1, kCachedRows / depth / unit.rows);
  const RowProduct product = {a, rows, depth, packed, columns, tiles * unit.rows, c, finish};
  const size_t panels = columns / unit.columns, threads = size_t(team.size());
  const size_t groups = CountOf(rows, product.group);
  size_t parts = 1;  // of columns
  const auto worth = [&] {
    return depth * columns / parts > kCachedPanels || groups * tiles * parts < 4 * threads;
  };
  while (parts * 2 <= threads && panels % (parts * 2) == 0 && worth()) parts *= 2;
  const bool little = rows * columns * depth < kParallelWork;
  const size_t grain = little ? groups * parts : std::max<size_t>(1, 4 / tiles);
  ParallelFor(team, groups * parts, grain, [&](size_t begin, size_t end) {
    while (begin < end) {
      const size_t part = begin / groups, first = part * groups;
      const size_t last = std::min(end, first + groups);
      unit.images->multiply_rows(product, (begin - first) * product.group,
                                 std::min(rows, (last - first) * product.group),
                                 panels * part / parts, panels * (part + 1) / parts);
      begin = last;
    }
  });
}

size_t ForwardPanels(const MatrixUnit& unit, const ConvShape& s) {
  if (!TapsAreLines(unit, s)) return PanelScratch(unit, s.kernel * s.kernel * s.in, s.out);
  return s.kernel * PanelScratch(unit, s.kernel * s.in, s.out);
}
size_t BackPanels(const MatrixUnit& unit, const ConvShape& s) {
  return PanelScratch(unit, s.kernel * s.kernel * s.out, s.in);
}

PaddedImages PaddedForward(const MatrixUnit& unit, const ConvShape& s) {
  return TapsAreLines(unit, s) ? PaddedImages::ForwardLines(s, LineDepth(unit, s))
                               : PaddedImages::Forward(s);
}

Portion ForwardPortion(const MatrixUnit& unit, const ConvShape& s, const PaddedImages& padded,
                       size_t count, size_t threads) {
  return {padded, s.out_height, ForwardPanels(unit, s), s.out / unit.columns, count, threads};
}
Portion BackPortion(const MatrixUnit& unit, const ConvShape& s, const PaddedImages& padded,
                    size_t count, size_t threads) {
  return {padded, CountOf(s.height, s.stride), BackPanels(unit, s), s.in / unit.columns, count,
          threads};
}

Phase ForwardPhase(const MatrixUnit& unit, const ConvShape& s, const PaddedImages& padded,
                   const Portion& portion, const BFloat* panels) {
  Phase phase{.lines = s.out_height, .width = s.out_width, .panels = panels};
  if (TapsAreLines(unit, s)) {
    phase.depth = LineDepth(unit, s);
    phase.panel = phase.depth * unit.columns;
    phase.tap = PanelScratch(unit, s.kernel * s.in, s.out);
    for (size_t y = 0; y < s.kernel; ++y) phase.taps.push_back(y * padded.line);
    return phase;
  }
  phase.depth = s.in;
  phase.panel = s.kernel * s.kernel * s.in * unit.columns;
  phase.tap = s.in * unit.columns;
  const size_t plane = padded.PlaneValues(portion.lines);
  for (size_t y = 0; y < s.kernel; ++y) {
    for (size_t x = 0; x < s.kernel; ++x) {
      phase.taps.push_back((y % s.stride * padded.planes + x % s.stride) * plane +
                           (y / s.stride * padded.line + x / s.stride) * s.in);
    }
  }
  return phase;
}

Phase BackPhase(const MatrixUnit& unit, const ConvShape& s, const PaddedImages& padded,
                const GradPhase& py, const GradPhase& px, const BFloat* panels) {
  Phase phase{.lines = py.pixels,
              .width = px.pixels,
              .depth = s.out,
              .panels = panels,
              .panel = py.taps * px.taps * s.out * unit.columns,
              .tap = s.out * unit.columns,
              .c_first = (py.rest * s.width + px.rest) * s.in};
  for (size_t y = 0; y < py.taps; ++y) {
    for (size_t x = 0; x < px.taps; ++x) {
      phase.taps.push_back(
          ((padded.top + py.offset - y) * padded.line + padded.left + px.offset - x) * s.out);
    }
  }
  return phase;
}

}  // namespace

bool ConvolvesImages(const MatrixUnit& unit, const ConvShape& s) {
  return unit.images && s.out % unit.columns == 0 && s.out_pixels() >= kFewRows &&
         (s.in % unit.step == 0 || LineDepth(unit, s) <= kLineDepth);
}

bool ConvolvesImagesBack(const MatrixUnit& unit, const ConvShape& s) {
  return unit.images && s.in % unit.columns == 0 && s.out % unit.step == 0 &&
         (s.height / s.stride) * (s.width / s.stride) >= kFewRows;
}

template <class From>
void ConvolveImages(const MatrixUnit& unit, const ConvShape& s, size_t count, const From* x,
                    const float* weights, BFloat* y, const Finish& finish, BFloat* scratch,
                    Team& team) {
  const size_t rows = count * s.out_pixels(), depth = s.kernel * s.kernel * s.in;
  const size_t line = s.kernel * s.in;  // of taps
  BFloat* copies = scratch + ForwardPanels(unit, s);
  if (TapsAreLines(unit, s)) {
    for (size_t i = 0; i < s.kernel; ++i) {
      PackPanels(unit, weights + i * line * s.out, line, s.out,
                 scratch + i * PanelScratch(unit, line, s.out), team);
    }
  } else {
    PackPanels(unit, weights, depth, s.out, scratch, team);
  }
  if constexpr (std::is_same_v<From, BFloat>) {
    if (IsMatrix(s) && !TapsAreLines(unit, s)) {
      return MultiplyRows(unit, x, rows, depth, scratch, s.out, y, finish, team);
    }
  }
  const PaddedImages padded = PaddedForward(unit, s);
  const Portion portion = ForwardPortion(unit, s, padded, count, size_t(team.size()));
  const std::vector<Phase> phases = {ForwardPhase(unit, s, padded, portion, scratch)};
  const ImagesTask<From> task{unit,
                              padded,
                              portion,
                              count,
                              s.out_height,
                              x,
                              s.in_pixels() * s.in,
                              phases,
                              y,
                              {s.out_pixels() * s.out, s.out_width * s.out, s.out},
                              s.out / unit.columns,
                              finish};
  task.RunAll(rows * depth * s.out, copies, team);
}

template <class From>
void ConvolveImagesBack(const MatrixUnit& unit, const ConvShape& s, size_t count, const From* dy,
                        const float* weights, BFloat* dx, const Finish& finish, BFloat* scratch,
                        Team& team) {
  const size_t rows = count * s.in_pixels();
  const PaddedImages padded = PaddedImages::Back(s);
  std::vector<Phase> phases;
  const BFloat* copies = scratch + BackPanels(unit, s);
  BFloat* panels = scratch;
  for (size_t y = 0; y < std::min(s.stride, s.height); ++y) {
    for (size_t x = 0; x < std::min(s.stride, s.width); ++x) {
      const GradPhase py(y, s.height, s), px(x, s.width, s);
      const TapGrid taps = {py.first_tap, px.first_tap, s.stride, py.taps, px.taps, s.kernel};
      phases.push_back(BackPhase(unit, s, padded, py, px, panels));
      if (taps.count() == 0) continue;  // no output sees these pixels
      PackTransposedPanels(unit, weights, taps, s.out, s.in, panels, team);
      panels += taps.count() * s.out * s.in;
    }
  }
  TRIREME_ASSERT(panels <= copies);
  if constexpr (std::is_same_v<From, BFloat>) {
    if (IsMatrix(s)) {
      return MultiplyRows(unit, dy, rows, s.out, scratch, s.in, dx, finish, team);
    }
  }
  const size_t lines = CountOf(s.height, s.stride);
  const Portion portion = BackPortion(unit, s, padded, count, size_t(team.size()));
  const ImagesTask<From> task{unit,
                              padded,
                              portion,
                              count,
                              lines,
                              dy,
                              s.out_pixels() * s.out,
                              phases,
                              dx,
                              {s.in_pixels() * s.in, s.stride * s.width * s.in, s.stride * s.in},
                              s.in / unit.columns,
                              finish};
  task.RunAll(count * s.out_pixels() * s.kernel * s.kernel * s.in * s.out,
              scratch + BackPanels(unit, s), team);
}

size_t ConvolveImagesScratch(const MatrixUnit& unit, const ConvShape& s, size_t count, bool narrow,
                             size_t threads) {
  if (narrow && IsMatrix(s) && !TapsAreLines(unit, s)) return ForwardPanels(unit, s);
  const PaddedImages padded = PaddedForward(unit, s);
  const Portion portion = ForwardPortion(unit, s, padded, count, threads);
  return ForwardPanels(unit, s) + threads * portion.Scratch(padded);
}

size_t ConvolveImagesBackScratch(const MatrixUnit& unit, const ConvShape& s, size_t count,
                                 bool narrow, size_t threads) {
  if (narrow && IsMatrix(s)) return BackPanels(unit, s);
  const PaddedImages padded = PaddedImages::Back(s);
  const Portion portion = BackPortion(unit, s, padded, count, threads);
  return BackPanels(unit, s) + threads * portion.Scratch(padded);
}

#define TRIREME_CONVOLUTIONS(From)                                                           \
  template void ConvolveImages(const MatrixUnit&, const ConvShape&, size_t, const From*,     \
                               const float*, BFloat*, const Finish&, BFloat*, Team&);        \
  template void ConvolveImagesBack(const MatrixUnit&, const ConvShape&, size_t, const From*, \
                                   const float*, BFloat*, const Finish&, BFloat*, Team&);
TRIREME_CONVOLUTIONS(float)
TRIREME_CONVOLUTIONS(BFloat)
#undef TRIREME_CONVOLUTIONS

}  // namespace trireme::cpu::bf16
