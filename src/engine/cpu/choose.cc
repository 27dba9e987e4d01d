#include "engine/cpu/choose.h"

namespace trireme::cpu {
namespace {

// Costs in multiply-adds of a product, as measured on AVX-512 (bench conv); direct ones count 1.
constexpr double kSamples = 16;     // that share the kernels
constexpr double kProduct = 1.15;   // smaller products, fewer tiles to share a panel
constexpr double kTurn = 28;        // to turn over one value of an input or output tile
constexpr double kTurnKernel = 40;  // one value of the kernels, mostly to write it and to read it

double WinogradCost(double tile, const ConvShape& s) {
  const double across = double((s.out_height + size_t(tile) - 1) / size_t(tile));
  const double along = double((s.out_width + size_t(tile) - 1) / size_t(tile));
  const double frequencies = (tile + 2) * (tile + 2), tiles = kSamples * across * along;
  const double in = double(s.in), out = double(s.out);
  return frequencies *
         (kProduct * tiles * in * out + kTurn * tiles * (in + out) + kTurnKernel * in * out);
}

}  // namespace

int ChooseWinograd(std::string_view winograd, const ConvShape& s, bool bf16) {
  if (s.kernel != 3 || s.stride != 1 || s.padding > 2) return 0;
  if (winograd == "off" || (bf16 && winograd == "auto")) return 0;
  if (winograd == "f2") return 2;
  if (winograd == "f4") return 4;
  const double direct = 9 * kSamples * double(s.out_pixels()) * double(s.in) * double(s.out);
  const double f2 = WinogradCost(2, s), f4 = WinogradCost(4, s);
  if (f4 < direct && f4 <= f2) return 4;
  return f2 < direct ? 2 : 0;
}

}  // namespace trireme::cpu
