#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <vector>

#include "base/half.h"
#include "graph/program.h"

namespace trireme::check {

// Activations in memory as the program lays them out.
class Activations {
 public:
  explicit Activations(size_t bytes)
      : bytes_(bytes), data_(new (std::align_val_t{64}) std::byte[bytes]) {
    std::memset(data_, 0xff, bytes);  // not a number, until it is written
  }
  ~Activations() { ::operator delete[](data_, std::align_val_t{64}); }
  Activations(const Activations&) = delete;

  std::span<std::byte> bytes() { return {data_, bytes_}; }

  void Put(const Operand& at, std::span<const double> numbers) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (at.spec.element == Element::kByte) {
        data_[at.offset + i] = std::byte(numbers[i]);
      } else if (IsNarrow(at.spec.element)) {
        const uint16_t bits = at.spec.element == Element::kHalf
                                  ? HalfBitsOf(numbers[i])
                                  : uint16_t(std::bit_cast<uint32_t>(float(numbers[i])) >> 16);
        std::memcpy(data_ + at.offset + 2 * i, &bits, 2);
      } else {
        const float x = float(numbers[i]);
        std::memcpy(data_ + at.offset + 4 * i, &x, 4);
      }
    }
  }

  std::vector<float> Get(const Operand& at, size_t size) const {
    std::vector<float> numbers(size);
    for (size_t i = 0; i < size; ++i) {
      if (at.spec.element == Element::kByte) {
        numbers[i] = float(data_[at.offset + i]);
      } else if (IsNarrow(at.spec.element)) {
        uint16_t bits;
        std::memcpy(&bits, data_ + at.offset + 2 * i, 2);
        numbers[i] = at.spec.element == Element::kHalf ? FloatOfHalf(bits)
                                                       : std::bit_cast<float>(uint32_t{bits} << 16);
      } else {
        std::memcpy(&numbers[i], data_ + at.offset + 4 * i, 4);
      }
    }
    return numbers;
  }

 private:
  size_t bytes_;
  std::byte* data_;
};

}  // namespace trireme::check
