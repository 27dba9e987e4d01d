#include "data/csv_field.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace trireme {

std::string_view TrimField(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::optional<float> ParseField(std::string_view text) {
  text = TrimField(text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  const float narrow = static_cast<float>(value);
  if (!std::isfinite(narrow)) return std::nullopt;
  return narrow;
}

std::string QuoteField(std::string_view text) {
  constexpr size_t kMost = 40;
  size_t end = std::min(text.size(), kMost);
  const bool utf8 = IsUtf8(text);
  while (utf8 && end < text.size() && (text[end] & 0xc0) == 0x80) --end;  // no half characters
  std::string shown;
  for (const char c : text.substr(0, end)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || byte == 0x7f) {
      shown += '?';
    } else if (byte >= 0x80 && !utf8) {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown += c;
    }
  }
  return "'" + shown + (end < text.size() ? "...'" : "'");
}

std::string QuoteFields(std::span<const std::string> texts) {
  constexpr size_t kNamed = 12;
  std::string shown;
  for (const std::string& text : texts.first(std::min(texts.size(), kNamed))) {
    shown += (shown.empty() ? "" : ", ") + QuoteField(text);
  }
  if (texts.size() > kNamed) shown += fmt::format(" and {} more", texts.size() - kNamed);
  return shown;
}

std::string FieldHint(std::string_view text) {
  if (text.find(';') != text.npos) {
    return "; this file seems to be separated by semicolons: save it with commas";
  }
  if (TrimField(text).find('\t') != text.npos) {
    return "; this file seems to be separated by tabs: save it with commas";
  }
  std::string point(text);
  if (std::count(point.begin(), point.end(), ',') == 1) {
    point[point.find(',')] = '.';
    if (ParseField(point)) return "; decimal commas are not supported: write " + point;
  }
  return "";
}

}  // namespace trireme
