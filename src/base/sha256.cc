#include "base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "base/files.h"

namespace trireme {
namespace {

constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t LoadBigEndian(const unsigned char* from) {
  return uint32_t{from[0]} << 24 | uint32_t{from[1]} << 16 | uint32_t{from[2]} << 8 | from[3];
}

using Words = std::array<uint32_t, 8>;

// One of the 64 rounds. Which word is `a` rotates from round to round, so that nothing is moved.
template <size_t kTurn>
void Round(Words& s, uint32_t term) {
  const auto at = [&](size_t i) -> uint32_t& { return s[(i + 8 - kTurn) % 8]; };
  const uint32_t a = at(0), b = at(1), c = at(2), e = at(4), f = at(5), g = at(6);
  const uint32_t big1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
  const uint32_t big0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
  const uint32_t moved = at(7) + big1 + (g ^ (e & (f ^ g))) + term;
  at(3) += moved;
  at(7) = moved + big0 + ((a & b) | (c & (a | b)));
}

template <size_t... kTurns>
void EightRounds(Words& s, const uint32_t* w, const uint32_t* k, std::index_sequence<kTurns...>) {
  (Round<kTurns>(s, w[kTurns] + k[kTurns]), ...);
}

}  // namespace

void Sha256::Compress(const unsigned char* blocks, size_t count) {
  for (; count > 0; --count, blocks += 64) {
    std::array<uint32_t, 64> w;
    for (size_t i = 0; i < 16; ++i) w[i] = LoadBigEndian(blocks + 4 * i);
    for (size_t i = 16; i < 64; ++i) {
      const uint32_t x = w[i - 15], y = w[i - 2];
      const uint32_t small0 = std::rotr(x, 7) ^ std::rotr(x, 18) ^ (x >> 3);
      const uint32_t small1 = std::rotr(y, 17) ^ std::rotr(y, 19) ^ (y >> 10);
      w[i] = w[i - 16] + small0 + w[i - 7] + small1;
    }
    Words s = state_;
    for (size_t i = 0; i < 64; i += 8) {
      EightRounds(s, w.data() + i, kRound.data() + i, std::make_index_sequence<8>());
    }
    for (size_t i = 0; i < 8; ++i) state_[i] += s[i];
  }
}

void Sha256::Add(const void* data, size_t bytes) {
  if (bytes == 0) return;
  const auto* next = static_cast<const unsigned char*>(data);
  const size_t waiting = total_ % 64;
  total_ += bytes;
  if (waiting > 0) {
    const size_t take = std::min(64 - waiting, bytes);
    std::memcpy(block_.data() + waiting, next, take);
    if (waiting + take < 64) return;
    Compress(block_.data(), 1);
    next += take;
    bytes -= take;
  }
  Compress(next, bytes / 64);
  std::memcpy(block_.data(), next + bytes / 64 * 64, bytes % 64);
}

std::string Sha256::Hex() const {
  Sha256 last = *this;
  const uint64_t bits = total_ * 8;
  constexpr unsigned char kOne = 0x80, kZeros[64] = {};
  last.Add(&kOne, 1);
  last.Add(kZeros, (120 - last.total_ % 64) % 64);
  unsigned char length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(bits >> (56 - 8 * i));
  last.Add(length, 8);

  std::string hex;
  for (const uint32_t word : last.state_) {
    for (int shift = 28; shift >= 0; shift -= 4) hex += "0123456789abcdef"[(word >> shift) & 15];
  }
  return hex;
}

std::string Sha256Hex(std::string_view text) {
  Sha256 hash;
  hash.Add(text);
  return hash.Hex();
}

std::string Sha256OfFile(const std::string& path) {
  const InputFile file(path);
  Sha256 hash;
  std::vector<char> piece(std::min<uint64_t>(file.size(), 1 << 18));
  for (uint64_t at = 0; at < file.size();) {
    const size_t bytes = std::min<uint64_t>(piece.size(), file.size() - at);
    file.ReadAt(at, piece.data(), bytes);
    hash.Add(piece.data(), bytes);
    at += bytes;
  }
  return hash.Hex();
}

}  // namespace trireme
