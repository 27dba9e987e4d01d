#include "image/png_writer.h"

#include <png.h>

#include "base/error.h"

namespace trireme {

std::string EncodePng(const uint8_t* rgb, PictureSize size) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(size.width);
  image.height = static_cast<png_uint_32>(size.height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string out(bytes, '\0');
  if (png_image_write_to_memory(&image, out.data(), &bytes, 0, rgb, 0, nullptr) == 0) {
    throw Error("PNG of {} x {} pixels: {}", size.width, size.height, image.message);
  }
  out.resize(bytes);
  return out;
}

}  // namespace trireme
