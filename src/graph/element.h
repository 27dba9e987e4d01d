#pragma once
#include <cstdint>
#include <string_view>

namespace trireme {

// What a number of a value is held as. kBFloat: bf16, the upper half of a float; kHalf: fp16, of
// IEEE 754.
enum class Element { kFloat, kBFloat, kHalf, kByte };

constexpr bool IsNarrow(Element element) {
  return element == Element::kBFloat || element == Element::kHalf;
}
constexpr int64_t BytesOf(Element element) {
  return element == Element::kFloat ? 4 : IsNarrow(element) ? 2 : 1;
}
constexpr std::string_view NameOf(Element element) {
  constexpr std::string_view kNames[] = {"f32", "bf16", "fp16", "byte"};
  return kNames[static_cast<int>(element)];
}

}  // namespace trireme
