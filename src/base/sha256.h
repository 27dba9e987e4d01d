#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace trireme {

// SHA-256 (FIPS 180-4), fed in pieces of any length.
class Sha256 {
 public:
  void Add(const void* data, size_t bytes);
  void Add(std::string_view text) { Add(text.data(), text.size()); }
  void Add(std::span<const float> values) { Add(values.data(), values.size_bytes()); }
  std::string Hex() const;  // of all that was added so far; more may follow

 private:
  void Compress(const unsigned char* blocks, size_t count);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> block_ = {};  // the first total_ % 64 bytes are waiting
  uint64_t total_ = 0;
};

std::string Sha256Hex(std::string_view text);
std::string Sha256OfFile(const std::string& path);

}  // namespace trireme
