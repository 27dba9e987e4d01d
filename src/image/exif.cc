#include "image/exif.h"

#include <cstddef>

namespace trireme {
namespace {

constexpr uint32_t kOrientation = 0x0112;
constexpr uint32_t kShort = 3;  // a field's type: one 16-bit number
constexpr size_t kEntry = 12;   // bytes

class Numbers {
 public:
  Numbers(std::span<const uint8_t> bytes, bool little) : bytes_(bytes), little_(little) {}

  // 0 beyond the end.
  uint32_t At(size_t place, size_t size) const {
    if (place > bytes_.size() || bytes_.size() - place < size) return 0;
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i) {
      value = value << 8 | bytes_[place + (little_ ? size - 1 - i : i)];
    }
    return value;
  }

 private:
  std::span<const uint8_t> bytes_;
  bool little_;
};

}  // namespace

int ReadOrientation(std::span<const uint8_t> tiff) {
  if (tiff.size() < 8 || tiff[0] != tiff[1] || (tiff[0] != 'I' && tiff[0] != 'M')) return 1;
  const Numbers numbers(tiff, tiff[0] == 'I');
  if (numbers.At(2, 2) != 42) return 1;
  const size_t directory = numbers.At(4, 4);
  const size_t entries = numbers.At(directory, 2);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * kEntry;
    if (entry + kEntry > tiff.size()) break;
    if (numbers.At(entry, 2) != kOrientation) continue;
    const uint32_t value = numbers.At(entry + 8, 2);
    const bool known = numbers.At(entry + 2, 2) == kShort && value >= 1 && value <= 8;
    return known ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace trireme
