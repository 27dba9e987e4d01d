#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// A pack: a head, the pictures one after the other, and an index at the end: entries, names of the
// classes, names of the pictures (each with its length before it). Numbers are little-endian.

enum class PackKind : uint32_t {
  kFiles = 0,   // JPEG and PNG as they were
  kPixels = 1,  // decoded and resized, RGB
};

struct PackHead {
  static constexpr size_t kBytes = 72;
  static constexpr std::string_view kMagic = "TRIREMEP";
  static constexpr uint32_t kVersion = 2;  // 1: there is no validation part, nor its number

  PackKind kind = PackKind::kFiles;
  uint32_t side = 0;  // of kPixels: pixels of the shorter side
  uint32_t classes = 0;
  uint64_t train = 0, validation = 0, test = 0;  // pictures, in this order
  uint64_t index_begin = 0, index_bytes = 0;
  uint32_t index_crc = 0;

  uint64_t pictures() const { return train + validation + test; }
  std::string Bytes() const;
  // Refuses what is no pack, cut, or promises more than `file_bytes` can hold.
  static PackHead Read(std::span<const uint8_t> file, const std::string& path);
};

struct PackEntry {
  static constexpr size_t kBytes = 32;

  uint64_t begin = 0, bytes = 0;
  uint32_t width = 0, height = 0;  // of kPixels
  int32_t label = 0;
  uint32_t crc = 0;  // of the picture's bytes, zlib's

  std::string Bytes() const;
  static PackEntry Read(const uint8_t* bytes);
};

uint32_t Crc(std::span<const uint8_t> bytes);

}  // namespace trireme
