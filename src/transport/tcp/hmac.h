#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace trireme {

using Digest = std::array<unsigned char, 32>;

Digest HmacSha256(std::string_view key, std::string_view text);  // RFC 2104
bool SameDigest(const Digest& a, const Digest& b);               // takes as long for any difference
void FillRandom(std::span<unsigned char> bytes);                 // from the kernel's generator
void FillRandomFrom(const char* path, std::span<unsigned char> bytes);  // old kernels
uint64_t RandomNumber();                                                // never 0

}  // namespace trireme
