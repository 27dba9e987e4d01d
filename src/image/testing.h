#pragma once
// Pictures that the tests of this folder and of data/ make themselves.
#include <png.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <vector>
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on

#include "image/geometry.h"

namespace trireme {

struct RgbPicture {
  PictureSize size;
  std::vector<uint8_t> rgb;

  const uint8_t* at(int x, int y) const { return rgb.data() + 3 * (y * size.width + x); }
};

// Smooth, and different everywhere: what JPEG keeps well.
inline RgbPicture SmoothPicture(int width, int height) {
  RgbPicture picture{{width, height}, std::vector<uint8_t>(size_t(3) * width * height)};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      uint8_t* pixel = picture.rgb.data() + 3 * (y * width + x);
      pixel[0] = static_cast<uint8_t>(20 + 200 * x / width);
      pixel[1] = static_cast<uint8_t>(20 + 200 * y / height);
      pixel[2] = static_cast<uint8_t>(20 + 100 * x / width + 100 * (height - y) / height);
    }
  }
  return picture;
}

using JpegSetting = std::function<void(jpeg_compress_struct&)>;  // between defaults and the start

// `exif`: an orientation for an EXIF block, 0: none.
inline std::string MakeJpeg(const RgbPicture& picture, const JpegSetting& set = {}, int exif = 0) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<JDIMENSION>(picture.size.width);
  info.image_height = static_cast<JDIMENSION>(picture.size.height);
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 95, TRUE);
  if (set) set(info);
  jpeg_start_compress(&info, TRUE);
  if (exif != 0) {
    std::string block("Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\0\0\0\0\0\0\0", 32);
    block[25] = static_cast<char>(exif);
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(block.data()),
                      static_cast<unsigned>(block.size()));
  }
  // Grey is the red channel, inks are the channels and no black, as Adobe writes them.
  const int channels = info.input_components;
  std::vector<uint8_t> row(size_t(channels) * picture.size.width, 255);
  for (int y = 0; y < picture.size.height; ++y) {
    for (int x = 0; x < picture.size.width; ++x) {
      for (int c = 0; c < std::min(3, channels); ++c) row[channels * x + c] = picture.at(x, y)[c];
    }
    JSAMPROW line = row.data();
    jpeg_write_scanlines(&info, &line, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string result(reinterpret_cast<char*>(bytes), size);
  std::free(bytes);
  return result;
}

struct PngKind {
  int bits = 8;
  int colours = PNG_COLOR_TYPE_RGB;
  bool interlaced = false;
  bool transparent = false;  // a tRNS chunk
};

// Grey is the red channel; a palette has the reds of the picture as greys.
inline std::string MakePng(const RgbPicture& picture, const PngKind& kind = {}) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  std::string bytes;
  png_set_write_fn(
      png, &bytes,
      [](png_structp p, png_bytep data, size_t size) {
        static_cast<std::string*>(png_get_io_ptr(p))->append(reinterpret_cast<char*>(data), size);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, static_cast<png_uint_32>(picture.size.width),
               static_cast<png_uint_32>(picture.size.height), kind.bits, kind.colours,
               kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  const int levels = 1 << std::min(8, kind.bits);
  std::vector<png_color> palette(levels);
  for (int i = 0; i < levels; ++i) {
    const auto grey = static_cast<png_byte>(i * 255 / (levels - 1));
    palette[i] = {grey, grey, grey};
  }
  if (kind.colours == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette.data(), levels);
  png_byte alpha[2] = {0, 128};
  png_color_16 clear{};
  if (kind.transparent) png_set_tRNS(png, info, alpha, 2, &clear);
  png_write_info(png, info);
  if (kind.bits < 8) png_set_packing(png);
  const bool grey = (kind.colours & PNG_COLOR_MASK_COLOR) == 0 || kind.bits < 8 ||
                    kind.colours == PNG_COLOR_TYPE_PALETTE;
  const int channels = (grey ? 1 : 3) + ((kind.colours & PNG_COLOR_MASK_ALPHA) != 0 ? 1 : 0);
  const int wide = kind.bits == 16 ? 2 : 1;
  const size_t row_bytes = size_t(wide) * channels * picture.size.width;
  std::vector<uint8_t> all(row_bytes * picture.size.height, 77);
  std::vector<uint8_t*> rows(picture.size.height);
  for (int y = 0; y < picture.size.height; ++y) {
    rows[y] = all.data() + y * row_bytes;
    for (int x = 0; x < picture.size.width; ++x) {
      for (int c = 0; c < (grey ? 1 : 3); ++c) {
        const int value = picture.at(x, y)[c] * levels / 256;
        for (int b = 0; b < wide; ++b) {
          rows[y][(x * channels + c) * wide + b] = static_cast<uint8_t>(value);
        }
      }
    }
  }
  png_write_image(png, rows.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

inline std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace trireme
