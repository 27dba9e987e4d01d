#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "image/decoder.h"
#include "image/filter.h"
#include "image/geometry.h"

namespace trireme {

// What of a picture is shown: a part of it as it stands upright, maybe mirrored left and right.
struct View {
  Box box;
  bool mirrored = false;
};

// What becomes of a byte of each channel: byte / 255 * scale + shift.
struct Colours {
  std::array<float, 3> scale = {1, 1, 1};
  std::array<float, 3> shift = {0, 0, 0};
};

// Decodes a view and resizes it on the way, row by row: no more of the picture is in memory than
// the rows that the filter spans. Keeps its buffers from one picture to the next. One thread.
class Renderer {
 public:
  // Into size.height rows of size.width RGB pixels. Where `decode_s` is not null, the seconds that
  // the decoder needed are added to it.
  void Draw(Decoder& picture, const View& view, PictureSize size, const Colours& colours,
            float* pixels, double* decode_s = nullptr);
  void Draw(Decoder& picture, const View& view, PictureSize size, uint8_t* pixels,
            double* decode_s = nullptr);

 private:
  struct Plan;
  template <class T>
  void DrawAs(Decoder& picture, const View& view, PictureSize size, const Colours& colours,
              T* pixels, std::vector<T>& turned, double* decode_s);
  template <class T>
  void DrawStored(Decoder& picture, const Plan& plan, const Colours& colours, T* pixels,
                  double* decode_s);
  void Write(const Colours& colours, float* row);
  void Write(const Colours& colours, uint8_t* row);

  Filter across_, down_;
  std::vector<uint8_t> ring_;   // the rows that the filter spans
  std::vector<float> blended_;  // one row, resized in height
  std::vector<float> row_;      // and in width
  std::vector<float> turned_floats_;
  std::vector<uint8_t> turned_bytes_;
};

}  // namespace trireme
