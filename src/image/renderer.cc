#include "image/renderer.h"

#include <algorithm>

#include "base/assert.h"
#include "base/clock.h"
#include "image/rows.h"

namespace trireme {

// The view in the coordinates of the stored picture: resizing and turning change places, which
// gives the same pixels and lets rows come as they are stored.
struct Renderer::Plan {
  Box box;
  PictureSize size;
  bool mirror_x, mirror_y;
};

void Renderer::Draw(Decoder& picture, const View& view, PictureSize size, const Colours& colours,
                    float* pixels, double* decode_s) {
  Colours of_bytes = colours;
  for (float& scale : of_bytes.scale) scale *= 1.0f / 255;
  DrawAs(picture, view, size, of_bytes, pixels, turned_floats_, decode_s);
}

void Renderer::Draw(Decoder& picture, const View& view, PictureSize size, uint8_t* pixels,
                    double* decode_s) {
  DrawAs(picture, view, size, {}, pixels, turned_bytes_, decode_s);
}

template <class T>
void Renderer::DrawAs(Decoder& picture, const View& view, PictureSize size, const Colours& colours,
                      T* pixels, std::vector<T>& turned, double* decode_s) {
  const PictureSize upright = picture.size();
  const Box& box = view.box;
  TRIREME_ASSERT(box.left >= 0 && box.top >= 0 && box.width > 0 && box.height > 0 &&
                 box.width <= upright.width - box.left && box.height <= upright.height - box.top);
  const Orientation o = picture.orientation();
  const bool mirror_x = o.mirror_x != view.mirrored;
  const Box stored = Stored(box, upright, o);
  if (!o.transpose) {
    return DrawStored(picture, {stored, size, mirror_x, o.mirror_y}, colours, pixels, decode_s);
  }
  turned.resize(size_t(3) * size.width * size.height);
  const PictureSize across = {size.height, size.width};
  DrawStored(picture, {stored, across, o.mirror_y, mirror_x}, colours, turned.data(), decode_s);
  for (ptrdiff_t y = 0; y < size.height; ++y) {
    for (ptrdiff_t x = 0; x < size.width; ++x) {
      const T* from = turned.data() + 3 * (x * size.height + y);
      std::copy_n(from, 3, pixels + 3 * (y * size.width + x));
    }
  }
}

template <class T>
void Renderer::DrawStored(Decoder& picture, const Plan& plan, const Colours& colours, T* pixels,
                          double* decode_s) {
  const double began = decode_s ? Now() : 0;
  const Strip strip = picture.Begin(plan.box, plan.size);
  if (decode_s) *decode_s += Now() - began;
  const double scale = strip.eighths / 8.0;
  MakeFilter(plan.box.left * scale - strip.left, plan.box.width * scale, plan.size.width,
             plan.mirror_x, across_);
  MakeFilter(plan.box.top * scale - strip.top, plan.box.height * scale, plan.size.height, false,
             down_);
  const size_t row_values = size_t(3) * strip.width;
  ring_.resize(row_values * down_.taps);
  blended_.resize(row_values + 3);
  row_.resize(size_t(3) * plan.size.width);
  std::vector<const uint8_t*> lines(down_.taps);
  const auto line = [&](int y) { return ring_.data() + y % down_.taps * row_values; };
  int decoded = 0;
  for (int y = 0; y < plan.size.height; ++y) {
    const int first = down_.first[y];
    const float* weights = down_.weights.data() + ptrdiff_t{y} * down_.taps;
    int taps = down_.taps;
    while (taps > 1 && weights[taps - 1] == 0) --taps;
    const double row_began = decode_s ? Now() : 0;
    for (; decoded < first + taps; ++decoded) picture.Next(line(decoded));
    if (decode_s) *decode_s += Now() - row_began;
    for (int t = 0; t < taps; ++t) lines[t] = line(first + t);
    rows::Blend({lines.data(), size_t(taps)}, weights, row_values, blended_.data());
    const ptrdiff_t place = plan.mirror_y ? plan.size.height - 1 - y : y;
    Write(colours, pixels + place * 3 * plan.size.width);
  }
}

void Renderer::Write(const Colours& colours, float* row) {
  const float scale[] = {colours.scale[0], colours.scale[1], colours.scale[2], 0};
  const float shift[] = {colours.shift[0], colours.shift[1], colours.shift[2], 0};
  rows::Across(blended_.data(), across_, scale, shift, row);
}

void Renderer::Write(const Colours& colours, uint8_t* row) {
  Write(colours, row_.data());
  rows::Round(row_.data(), row_.size(), row);
}

}  // namespace trireme
