#pragma once
#include <cmath>
#include <cstdint>

namespace trireme {

// Random numbers as a function of (key, counter): no hidden state, so any rank or thread can draw
// the n-th number without drawing those before it. What is constexpr may run on a card, too.
constexpr uint64_t Mix(uint64_t x) {  // the finalizer of splitmix64 (Steele, Lea, Flood 2014)
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr uint64_t HashKey(uint64_t a, uint64_t b) {
  return Mix(a + 0x9e3779b97f4a7c15u * (b + 1));
}

// One number out of several that say what it is for: Hash(seed, epoch, sample).
constexpr uint64_t Hash(uint64_t x) { return Mix(x + 0x9e3779b97f4a7c15u); }
template <class... More>
constexpr uint64_t Hash(uint64_t first, uint64_t second, More... more) {
  return Hash(Hash(first) ^ second, more...);
}

class Random {
 public:
  constexpr explicit Random(uint64_t key) : key_(Hash(key)) {}
  constexpr uint64_t Bits(uint64_t counter) const { return HashKey(key_, counter); }
  constexpr double Uniform(uint64_t counter) const {
    return double(Bits(counter) >> 11) * 0x1p-53;
  }                                        // [0, 1)
  double Normal(uint64_t counter) const {  // Box-Muller, two draws per number
    const double u = 1.0 - Uniform(2 * counter), v = Uniform(2 * counter + 1);
    return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v);
  }

 private:
  uint64_t key_;
};

}  // namespace trireme
