// Which of the matrix instructions an x86_64 processor has, and leave to use them.
#include "engine/cpu/bf16/x86.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace trireme::cpu {
namespace {

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers Ask(unsigned leaf, unsigned part) {
  Registers r;
  if (!__get_cpuid_count(leaf, part, &r.a, &r.b, &r.c, &r.d)) return {};
  return r;
}

bool Bit(unsigned word, int bit) { return word >> bit & 1; }

// Registers that the system saves when it switches tasks.
uint64_t SavedState() {
  if (!Bit(Ask(1, 0).c, 27)) return 0;  // no xgetbv
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

// Tiles are 8 KiB of every thread that uses them, so Linux wants to be asked once per process.
std::string AskForTiles() {
#ifdef SYS_arch_prctl
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0) return "";
  return std::string("the system refused AMX tiles: ") + std::strerror(errno);
#else
  return "this build cannot request AMX tiles from the system";
#endif
}

}  // namespace

std::string MissingAvx512BFloat() {
  constexpr uint64_t kVectors = 0xe6;  // 128, 256 and 512 bits, masks
  const Registers seven = Ask(7, 0);
  // Foundation, double and quad words, bytes and words, short vectors.
  const bool has_avx512 =
      Bit(seven.b, 16) && Bit(seven.b, 17) && Bit(seven.b, 30) && Bit(seven.b, 31);
  if (!has_avx512 || !Bit(Ask(7, 1).a, 5)) return "the processor has no AVX512-BF16";
  if ((SavedState() & kVectors) != kVectors) return "the system has AVX-512 switched off";
  return "";
}

std::string MissingAmx() {
  constexpr uint64_t kTiles = 0x60000;
  const unsigned d = Ask(7, 0).d;
  if (!Bit(d, 22) || !Bit(d, 24)) return "the processor has no AMX-BF16";
  if (const std::string missing = MissingAvx512BFloat(); !missing.empty()) return missing;
  if ((SavedState() & kTiles) != kTiles) return "the system has AMX switched off";
  static const std::string leave = AskForTiles();
  return leave;
}

}  // namespace trireme::cpu
