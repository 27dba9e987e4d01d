#pragma once
#include <algorithm>

#include "image/decoder.h"

namespace trireme {

// Pixels that are decoded already: RGB bytes, row by row, borrowed.
class RawPicture : public Decoder {
 public:
  RawPicture(const uint8_t* rgb, PictureSize size) : rgb_(rgb) { stored_ = size; }

  Strip Begin(const Box& box, PictureSize) override {
    box_ = box;
    row_ = box.top;
    return {.left = box.left, .width = box.width, .top = box.top, .bottom = box.top + box.height};
  }
  void Next(uint8_t* rgb) override {
    const uint8_t* from = rgb_ + 3 * (int64_t{row_++} * stored_.width + box_.left);
    std::copy_n(from, 3 * box_.width, rgb);
  }
  void Verify() override {}

 private:
  const uint8_t* rgb_;
  Box box_;
  int row_ = 0;
};

}  // namespace trireme
