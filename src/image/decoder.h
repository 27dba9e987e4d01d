#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "image/geometry.h"

namespace trireme {

// What Decoder::Begin decided to decode.
struct Strip {
  int eighths = 8;  // pixels come out shrunk to so many eighths
  int left = 0;     // of the rows' first pixel, in shrunk pixels
  int width = 0;    // shrunk pixels in a row
  int top = 0;      // the first row that Next gives
  int bottom = 0;   // behind the last one
};

// A picture in memory being decoded: the header at once, its rows when asked. The bytes are
// borrowed. Every failure is an Error that begins with the picture's name. One thread.
class Decoder {
 public:
  virtual ~Decoder() = default;

  PictureSize stored() const { return stored_; }
  Orientation orientation() const { return orientation_; }
  PictureSize size() const { return Upright(stored_, orientation_); }  // as it is looked at

  // Decodes the rows that hold `box` of the stored picture, once. `least` pixels of the box must be
  // left across and down (formats that can leave out detail shrink to no fewer).
  virtual Strip Begin(const Box& box, PictureSize least) = 0;

  // The next row, RGB, into 3 * strip.width bytes.
  virtual void Next(uint8_t* rgb) = 0;

  // Reads all of it and throws what is wrong with it; faster than decoding where it can be.
  virtual void Verify() = 0;

 protected:
  PictureSize stored_;
  Orientation orientation_;
};

// By the content, not the name: JPEG or PNG. `name` is for messages.
std::unique_ptr<Decoder> OpenPicture(std::span<const uint8_t> bytes, const std::string& name);

bool IsPicture(std::span<const uint8_t> bytes);  // that OpenPicture would try

// Whether a file's name ends as pictures' do: .jpg, .jpeg, .png, in any case.
bool HasPictureName(std::string_view path);

// Throws where a header promises more than kMaxPixels, or nothing.
void CheckPictureSize(int64_t width, int64_t height, const std::string& name);

}  // namespace trireme
