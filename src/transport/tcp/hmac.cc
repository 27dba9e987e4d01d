#include "transport/tcp/hmac.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string>

#include "base/error.h"
#include "base/sha256.h"

namespace trireme {
namespace {

Digest FromHex(const std::string& hex) {
  Digest digest{};
  for (size_t i = 0; i < digest.size(); ++i) {
    std::from_chars(hex.data() + 2 * i, hex.data() + 2 * i + 2, digest[i], 16);
  }
  return digest;
}

}  // namespace

Digest HmacSha256(std::string_view key, std::string_view text) {
  std::array<unsigned char, 64> block{};
  if (key.size() > block.size()) {
    const Digest digest = FromHex(Sha256Hex(key));
    std::memcpy(block.data(), digest.data(), digest.size());
  } else if (!key.empty()) {
    std::memcpy(block.data(), key.data(), key.size());
  }
  const auto pad = [&](unsigned char with, const void* data, size_t bytes) {
    auto padded = block;
    for (unsigned char& c : padded) c ^= with;
    Sha256 hash;
    hash.Add(padded.data(), padded.size());
    hash.Add(data, bytes);
    return FromHex(hash.Hex());
  };
  const Digest inner = pad(0x36, text.data(), text.size());
  return pad(0x5c, inner.data(), inner.size());
}

bool SameDigest(const Digest& a, const Digest& b) {
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= unsigned(a[i] ^ b[i]);
  return difference == 0;
}

// By its number: glibc has it since 2.25. Kernels before 3.17 have none.
void FillRandom(std::span<unsigned char> bytes) {
  while (!bytes.empty()) {
    const long n = syscall(SYS_getrandom, bytes.data(), bytes.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == ENOSYS) return FillRandomFrom("/dev/urandom", bytes);
    if (n < 0) throw Error("cannot read random bytes: {}", std::strerror(errno));
    bytes = bytes.subspan(size_t(n));
  }
}

void FillRandomFrom(const char* path, std::span<unsigned char> bytes) {
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(bytes.data()), std::streamsize(bytes.size()));
  if (!file) throw Error("{}: cannot read random bytes", path);
}

uint64_t RandomNumber() {
  uint64_t number = 0;
  while (number == 0) FillRandom({reinterpret_cast<unsigned char*>(&number), sizeof(number)});
  return number;
}

}  // namespace trireme
