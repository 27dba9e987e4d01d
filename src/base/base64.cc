#include "base/base64.h"

#include <algorithm>
#include <cstdint>

namespace trireme {
namespace {

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string Base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](size_t k) {
      return i + k < bytes.size() ? uint32_t(uint8_t(bytes[i + k])) : 0u;
    };
    const uint32_t bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (int shift = 18; shift >= 0; shift -= 6) text += kBase64[bits >> shift & 63];
  }
  const size_t missing = (3 - bytes.size() % 3) % 3;
  for (size_t i = 1; i <= missing; ++i) text[text.size() - i] = '=';
  return text;
}

bool IsBase64(std::string_view text) {
  if (text.size() % 4 != 0) return false;
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return kBase64.find(c) != kBase64.npos; });
}

}  // namespace trireme
