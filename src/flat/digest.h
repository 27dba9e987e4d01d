#pragma once
#include <cstdint>

#include "base/random.h"

namespace trireme {

// A digest of a range: 64 bits, the sum of its values' terms modulo 2^64. Sums come in any order,
// so any number of threads forms it to the same bits. A term is one-to-one in the value's bits and
// its place: whichever single value changes, the digest does.
constexpr uint64_t DigestTerm(uint32_t bits, uint64_t place) { return Hash((place << 32) + bits); }

}  // namespace trireme
