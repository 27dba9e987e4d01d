#pragma once
#include <cstdint>

namespace trireme {

// Random numbers as functions of what they are for (seed, epoch, sample, ...): nothing to store,
// nothing to share between threads, and a resumed run draws the same ones.
// The finaliser of splitmix64 (Steele, Lea, Flood 2014).
constexpr uint64_t Hash(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

template <class... More>
constexpr uint64_t Hash(uint64_t first, uint64_t second, More... more) {
  return Hash(Hash(first) ^ second, more...);
}

}  // namespace trireme
