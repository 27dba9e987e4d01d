#pragma once
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace trireme {

// Insertions, deletions, replacements and swaps of neighbours that lead from `a` to `b`.
size_t EditDistance(std::string_view a, std::string_view b);

// The candidate most like `word`; nothing when none is close enough to be a slip of the hand.
std::optional<std::string> Nearest(std::string_view word, std::span<const std::string> candidates);

// "; did you mean NAME?" for the end of a message, or nothing.
std::string DidYouMean(std::string_view word, std::span<const std::string> candidates);

std::string_view Trim(std::string_view text);
std::string ToLower(std::string_view text);                             // of ASCII
std::vector<std::string> Split(std::string_view text, char separator);  // keeps empty parts
bool IsUtf8(std::string_view text);
std::string ShellLine(std::span<const std::string> words);  // that a shell reads as they are

// As a terminal shows it, a column for each character of UTF-8.
size_t Columns(std::string_view text);
std::string_view FirstColumns(std::string_view text, size_t most);
// Parts with something between them, on as many lines of at most `width` columns as they need.
std::vector<std::string> Wrap(std::span<const std::string> parts, std::string_view between,
                              size_t width);

// The number that is the whole of `text`: no spaces, no rest, no overflow, no NaN or infinity.
template <class T>
std::optional<T> ParseNumber(std::string_view text) {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(number)) return std::nullopt;
  }
  return number;
}

std::string FormatBytes(double bytes);  // 512 B, 1.5 KiB, 46.8 MiB
std::string FormatSeconds(
    double seconds);                     // 3.2 us, 41 ms, 7.5 s, 2 min 05 s, 1 h 02 min, 3 d 04 h
std::string FormatCount(int64_t count);  // 11,689,512
std::string Counted(int64_t count, std::string_view noun);  // 1 epoch, 1,200 epochs
std::string FormatLoss(double loss);  // four digits that count: 0.2137, 0.0001670, 1.290e+05, nan

}  // namespace trireme
