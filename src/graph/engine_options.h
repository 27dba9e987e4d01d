#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/options.h"
#include "graph/element.h"

// What a recipe asks of an engine, whichever it is.

namespace trireme {

// How products are computed; sums are float32 in each. tf32: operands with a mantissa of 10 bits,
// values between layers stay float32. fp16: small gradients would vanish, so the loss is scaled.
enum class Precision { kF32, kTf32, kBf16, kFp16 };
inline constexpr Precision kPrecisions[] = {Precision::kF32, Precision::kTf32, Precision::kBf16,
                                            Precision::kFp16};
std::string_view NameOf(Precision precision);  // f32, tf32, bf16, fp16
// What the operands of products are held as.
constexpr Element OperandsIn(Precision precision) {
  return precision == Precision::kBf16   ? Element::kBFloat
         : precision == Precision::kFp16 ? Element::kHalf
                                         : Element::kFloat;
}

// Section [engine] of a recipe.
struct EngineOptions {
  std::string winograd = "auto";  // off, f2, f4, auto
  bool check = false;             // wait for each operation: a fault is found where it happens
  bool measure = true;            // how products are computed is chosen by measurement
  int64_t memory_mb = 0;          // that a card's rank may take; 0: all there is
  IntOrWord samples_mb = "auto";  // that a set of samples may take there; 0: they travel
};

void Describe(OptionTable<EngineOptions>& t);

}  // namespace trireme
