#pragma once
#include <cstdint>

#include "base/random.h"

namespace trireme {

// A digest of a range: 64 bits, the sum of its words' terms modulo 2^64. Sums come in any order, so
// any number of threads forms it to the same bits. Word w has the bits of values 2 w (its low half)
// and 2 w + 1, or zeros where the range has ended. A term is one-to-one in its word: whichever
// single value changes, the digest does.
constexpr uint64_t DigestTerm(uint64_t word, uint64_t w) { return HashKey(word, w); }
constexpr uint64_t WordOf(uint32_t first, uint32_t second) {
  return uint64_t{second} << 32 | first;
}

}  // namespace trireme
